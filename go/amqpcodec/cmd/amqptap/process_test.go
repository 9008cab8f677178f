package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"courser/amqpcodec"
)

// A process is an amqptap of its own.
type process struct {
	command *exec.Cmd
	address string
	stdout  io.ReadCloser
	stderr  buffer
}

// launch runs amqptap as a program, in front of a broker.
func launch(t *testing.T, broker string, environment ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0], "--listen", "127.0.0.1:0", "--broker", broker)}
	p.command.Env = append(append(os.Environ(), "BE_AMQPTAP=yes"), environment...)
	p.command.Stderr = &p.stderr
	var err error
	if p.stdout, err = p.command.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	p.address = relayed(t, &p.stderr)
	return p
}

// wait is until the program ends; it returns its status.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	ended := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer ended.Stop()
	_ = p.command.Wait()
	return p.command.ProcessState.ExitCode()
}

func TestControlCEndsItWithASummary(t *testing.T) {
	listener := listen(t)
	p := launch(t, listener.Addr().String())
	client, broker := connect(t, &tapped{address: p.address}, listener)
	pass(t, client, broker, method(t, 1, &amqpcodec.BasicAck{DeliveryTag: 1}))
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	output, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	if status := p.wait(t); status != 0 {
		t.Errorf("status %d", status)
	}
	if !strings.Contains(string(output), "basic.ack delivery-tag=1\n") || strings.Contains(string(output), "\x1b") {
		t.Errorf("%s", output)
	}
	if got := p.stderr.String(); !strings.Contains(got, "1 connections; from clients 1 frames in 21 bytes, from the broker 0 frames in 0 bytes\nmethod ") {
		t.Errorf("%q", got)
	}
}

func TestItGoesOnRelayingWhenNobodyReadsItsOutput(t *testing.T) {
	listener := listen(t)
	p := launch(t, listener.Addr().String())
	client, broker := connect(t, &tapped{address: p.address}, listener)
	if _, err := bufio.NewReader(p.stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = p.stdout.Close()
	ack := method(t, 1, &amqpcodec.BasicAck{DeliveryTag: 1})
	pass(t, client, broker, ack)
	eventually(t, "that nothing is shown is said", func() bool {
		return strings.Contains(p.stderr.String(), "nothing more is shown (write /dev/stdout: broken pipe); relaying goes on")
	})
	for range 10 {
		pass(t, client, broker, ack)
		pass(t, broker, client, ack)
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	if status := p.wait(t); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestABrokerWithTLSIsReachedByAClientWithout(t *testing.T) {
	certificate, file := selfSigned(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := launch(t, "amqps://guest:sesame@"+listener.Addr().String()+"/vhost", "SSL_CERT_FILE="+file)
	if strings.Contains(p.stderr.String(), "sesame") {
		t.Errorf("the password is shown: %q", p.stderr.String())
	}
	go func() {
		if broker, err := listener.Accept(); err == nil {
			_, _ = io.Copy(broker, broker)
			_ = broker.Close()
		}
	}()
	client, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(patience))
	pass(t, client, client, method(t, 1, &amqpcodec.BasicAck{DeliveryTag: 7}))
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("%x, %v", rest, err)
	}
	_ = p.command.Process.Signal(os.Interrupt)
	output, _ := io.ReadAll(p.stdout)
	if p.wait(t); strings.Count(string(output), "basic.ack delivery-tag=7") != 2 {
		t.Errorf("%s", output)
	}
}

// selfSigned is a certificate for the loopback, and a file in which to trust it.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
