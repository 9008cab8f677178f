// Amqptap relays connections between AMQP 0-9-1 clients and a broker, and shows the frames that pass:
//
//	amqptap --listen 127.0.0.1:5673 --broker 127.0.0.1:5672
//
// A client that connects to the first address talks to the second, as if nothing were between. amqptap --help lists the
// options.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"courser/amqpcodec"
	"courser/amqpcodec/internal/tap"
)

const usage = `usage: amqptap [OPTION...]

Relays AMQP 0-9-1 connections to a broker and shows the frames that pass, or shows those in a capture.

  --listen HOST:PORT     where clients connect to (default 127.0.0.1:5673)
  --broker ADDRESS       the broker: HOST:PORT or an amqp:// or amqps:// address (default 127.0.0.1:5672)
  --write FILE           also record everything that passes, as a pcap file for Wireshark or --read
  --read FILE            do not relay: show the connections to the broker's port in a pcap file; - is standard input

  --only NAME,...        only these: methods such as basic.publish or queue.*, header, body, heartbeat
  --channel NUMBER       only this channel
  --queue PATTERN        only what names this queue, with its messages and answers
  --exchange PATTERN     only what names this exchange; amq.default is the one without a name
  --key PATTERN          only what has this routing key
  --body BYTES           how much of a body to show; 0 only its size, -1 no body frames (default 64)
  --secrets              show credentials, which are hidden otherwise

  --json                 one JSON object per line instead of text
  --color WHEN           auto (default: on a terminal), always, never
  --max-connections N    relayed at the same time; further ones wait (default 10000)
  --help                 this text

Change only the port that clients connect to. To see the traffic of a TLS client, let it connect without TLS, and give the
broker as amqps://. Whatever amqptap cannot decode it relays unchanged, and says so. Ctrl-C ends it, with a summary of the
methods and of how long their answers took. In patterns, * matches any characters and ? one.

  amqptap --broker rabbit.example:5672
  amqptap --queue 'orders.*' --body 200
  amqptap --only 'basic.*,header' --json | jq 'select(.method == "basic.publish").fields'
  tcpdump -U -i any -w - port 5672 | amqptap --read - --only basic.publish
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	// The relaying goes on when the output is not read any more.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are what the command line says.
type settings struct {
	listen, broker, only, color string
	read, write                 string
	// target is the broker as it is named to people, without a password.
	target  string
	options tap.Options
}

// run is the program; it returns the exit status.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	settings, err := parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, usage)
		return 0
	}
	complain := func(problem any) { _, _ = fmt.Fprintf(stderr, "amqptap: %v\n", problem) }
	if err != nil {
		complain(err)
		_, _ = fmt.Fprintln(stderr, "amqptap --help lists the options")
		return 2
	}
	settings.options.Output = stdout
	settings.options.Colours = settings.color == "always" || (settings.color == "auto" && isTerminal(stdout))
	settings.options.Warn = func(problem string) { complain(problem) }
	act := relay
	if settings.read != "" {
		act = replay
	}
	summary, err := act(ctx, settings, stderr)
	if summary != "" {
		_, _ = fmt.Fprintf(stderr, "amqptap: %s", summary)
	}
	if err != nil {
		complain(err)
		return 1
	}
	return 0
}

// relay relays connections until the context ends.
func relay(ctx context.Context, settings *settings, stderr io.Writer) (summary string, err error) {
	listener, err := net.Listen("tcp", settings.listen)
	if err != nil {
		return "", err
	}
	if settings.write != "" {
		file, err := create(settings.write)
		if err != nil {
			_ = listener.Close()
			return "", err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		settings.options.Record = file
	}
	_, _ = fmt.Fprintf(stderr, "amqptap: relaying %v to %s\n", listener.Addr(), settings.target)
	proxy := tap.New(settings.options)
	err = proxy.Serve(ctx, listener)
	return proxy.Summary(), err
}

// create makes a file for a recording, or empties it. Only its owner can read it: it has what clients log in with.
func create(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	// One that was there keeps its mode otherwise. Pipes and devices are as they are.
	if err == nil && info.Mode().IsRegular() {
		err = file.Chmod(0o600)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// replay shows a capture, until it or the context ends.
func replay(ctx context.Context, settings *settings, _ io.Writer) (summary string, err error) {
	file := os.Stdin
	if settings.read != "-" {
		if file, err = os.Open(settings.read); err != nil {
			return "", err
		}
		defer file.Close()
	}
	port, err := portOf(settings.target)
	if err != nil {
		return "", err
	}
	summary, err = tap.Replay(settings.options, untilDone{ctx, file}, port)
	if err != nil {
		err = fmt.Errorf("%s: %w", settings.read, err)
	}
	return summary, err
}

// untilDone is a file that ends when the context does.
type untilDone struct {
	ctx  context.Context
	file io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, io.EOF
	}
	return u.file.Read(p)
}

func portOf(target string) (uint16, error) {
	_, name, err := net.SplitHostPort(target)
	if err != nil {
		return 0, err
	}
	port, err := net.LookupPort("tcp", name)
	return uint16(port), err
}

func parse(arguments []string) (*settings, error) {
	var s settings
	flags := flag.NewFlagSet("amqptap", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:5673", "")
	flags.StringVar(&s.broker, "broker", "127.0.0.1:5672", "")
	flags.StringVar(&s.read, "read", "", "")
	flags.StringVar(&s.write, "write", "", "")
	flags.StringVar(&s.only, "only", "", "")
	flags.StringVar(&s.options.Queue, "queue", "", "")
	flags.StringVar(&s.options.Exchange, "exchange", "", "")
	flags.StringVar(&s.options.Key, "key", "", "")
	flags.StringVar(&s.color, "color", "auto", "")
	flags.BoolVar(&s.options.JSON, "json", false, "")
	flags.BoolVar(&s.options.Secrets, "secrets", false, "")
	flags.IntVar(&s.options.BodyMax, "body", 64, "")
	flags.IntVar(&s.options.Channel, "channel", -1, "")
	flags.IntVar(&s.options.ConnectionsMax, "max-connections", 10000, "")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch s.color {
	case "auto", "always", "never":
	default:
		return nil, fmt.Errorf("--color is auto, always or never, not %q", s.color)
	}
	if s.options.ConnectionsMax < 1 {
		return nil, errors.New("--max-connections is at least 1")
	}
	const bodyMax = 64 * 1024
	if s.options.BodyMax < -1 || s.options.BodyMax > bodyMax {
		return nil, fmt.Errorf("--body is at least -1 and at most %d", bodyMax)
	}
	if s.only != "" {
		s.options.Only = strings.Split(s.only, ",")
	}
	if s.read != "" {
		// Options of a relay would be without effect.
		var surplus error
		flags.Visit(func(given *flag.Flag) {
			if slices.Contains([]string{"listen", "write", "max-connections"}, given.Name) {
				surplus = fmt.Errorf("--read relays nothing: it does not go with --%s", given.Name)
			}
		})
		if surplus != nil {
			return nil, surplus
		}
	}
	for option, pattern := range map[string]string{"queue": s.options.Queue, "exchange": s.options.Exchange, "key": s.options.Key} {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("--%s: %q is no pattern", option, pattern)
		}
	}
	for _, pattern := range s.options.Only {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("--only: %q is no pattern", pattern)
		}
		if !showsAnything(pattern) {
			return nil, fmt.Errorf("--only: no method is called %q, nor is it header, body or heartbeat", pattern)
		}
	}
	var err error
	s.target, s.options.Dial, err = dialer(s.broker)
	return &s, err
}

// showsAnything reports whether there is a frame that a pattern takes.
func showsAnything(pattern string) bool {
	names := []string{"header", "body", "heartbeat"}
	for class := amqpcodec.MethodID(10); class <= 90; class++ {
		for method := amqpcodec.MethodID(10); method <= 130; method++ {
			name := (class<<16 | method).String()
			// A number that no method has is told as one.
			if !strings.Contains(name, " ") {
				names = append(names, name)
			}
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		matches, _ := path.Match(pattern, name)
		return matches
	})
}

type dial = func(context.Context) (net.Conn, error)

// dialer returns which broker an address names, and how to connect to it. User, password and path are the client's to say.
func dialer(broker string) (target string, dial dial, err error) {
	if !strings.Contains(broker, "://") {
		_, port, err := net.SplitHostPort(broker)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return "", nil, fmt.Errorf("--broker: %w", err)
		}
		return broker, plain(broker), nil
	}
	address, err := url.Parse(broker)
	if err != nil || address.Hostname() == "" {
		return "", nil, errors.New("--broker: that is no address of a broker")
	}
	switch address.Scheme {
	case "amqp":
		target = net.JoinHostPort(address.Hostname(), orElse(address.Port(), strconv.Itoa(amqpcodec.Port)))
		return target, plain(target), nil
	case "amqps":
		target = net.JoinHostPort(address.Hostname(), orElse(address.Port(), strconv.Itoa(amqpcodec.TLSPort)))
		return target, encrypted(target, address.Hostname()), nil
	default:
		return "", nil, fmt.Errorf("--broker: the address begins with amqp:// or amqps://, not %s://", address.Scheme)
	}
}

func plain(target string) dial {
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", target) }
}

func encrypted(target, host string) dial {
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
	return func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", target) }
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// isTerminal reports whether the output is one that shows colours, and colours were not turned off.
func isTerminal(output io.Writer) bool {
	file, ok := output.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
