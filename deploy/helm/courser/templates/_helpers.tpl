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
