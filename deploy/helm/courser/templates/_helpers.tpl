{{- define "courser.name" -}}
{{- if contains "courser" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-courser" .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "courser.selector" -}}
app.kubernetes.io/name: courser
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "courser.labels" -}}
{{ include "courser.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "courser.secret" -}}
{{- .Values.auth.existingSecret | default (include "courser.name" .) -}}
{{- end -}}

{{- define "courser.clusterSecret" -}}
{{- .Values.cluster.existingSecret | default (printf "%s-cluster" (include "courser.name" .)) -}}
{{- end -}}

{{/* Secrets with tls.crt and tls.key: those that are named, or that cert-manager is asked to make; empty without TLS. */}}
{{- define "courser.tlsSecret" -}}
{{- if .Values.tls.secretName }}{{ .Values.tls.secretName }}{{ else if .Values.tls.certManager.issuerRef }}{{ include "courser.name" . }}-tls{{ end -}}
{{- end -}}

{{- define "courser.clusterTlsSecret" -}}
{{- if .Values.cluster.tlsSecretName }}{{ .Values.cluster.tlsSecretName }}{{ else if .Values.cluster.certManager.issuerRef }}{{ include "courser.name" . }}-cluster-tls{{ end -}}
{{- end -}}

{{/* Where the pods of a cluster reach each other: names that the headless service gives them. */}}
{{- define "courser.join" -}}
{{- $name := include "courser.name" . -}}
{{- range $index := until (int .Values.cluster.replicas) -}}
{{- if $index }},{{ end }}{{ printf "%s-%d.%s-pods.%s.svc:5680" $name $index $name $.Release.Namespace }}
{{- end -}}
{{- end -}}
