package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout is how long a connection to the broker may take to be made.
const dialTimeout = 10 * time.Second

// Options say what a proxy shows, and how.
type Options struct {
	// Dial makes a connection to the broker.
	Dial func(ctx context.Context) (net.Conn, error)
	// Output takes what is shown.
	Output io.Writer
	// JSON shows an object a line instead of text, Colours marks text for terminals.
	JSON, Colours bool
	// BodyMax is how many bytes of a body frame are shown; below 0, body frames are not.
	BodyMax int
	// Secrets shows what clients log in with.
	Secrets bool
	// Only are patterns of [path.Match] for what is shown: names of methods, "header", "body", "heartbeat". None is all.
	Only []string
	// Channel is the only one that is shown, when it is not negative.
	Channel int
	// Warn is told, once, that the output failed.
	Warn func(problem string)
	// ConnectionsMax is how many connections are relayed at once; further ones wait to be accepted.
	ConnectionsMax int
}

// A Proxy relays connections and shows their frames.
type Proxy struct {
	options Options
	queue   *queue
	printed chan struct{}
	buffers busyBuffers

	mutex       sync.Mutex
	open        map[net.Conn]struct{}
	closed      bool
	connections uint64
	totals      totals
}

// New returns a proxy that has begun to print. [Proxy.Serve] makes it relay.
func New(options Options) *Proxy {
	p := &Proxy{
		options: options,
		queue:   newQueue(queueMax),
		printed: make(chan struct{}),
		open:    map[net.Conn]struct{}{},
	}
	printer := newPrinter(&p.options)
	go func() {
		printer.run(p.queue)
		close(p.printed)
	}()
	return p
}

// Serve accepts connections and relays them until the context ends; then it closes them all and returns nil, when
// everything is printed. An error is the listener's. A proxy serves once.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close()
		p.closeAll()
	})
	defer stop()
	var relays sync.WaitGroup
	slots := make(chan struct{}, max(p.options.ConnectionsMax, 1))
	var failure error
	for ctx.Err() == nil {
		slots <- struct{}{}
		accepted, err := listener.Accept()
		if err != nil {
			<-slots
			if ctx.Err() != nil || !isTemporary(err) {
				failure = err
				break
			}
			time.Sleep(50 * time.Millisecond)
			continue
		}
		relays.Add(1)
		go func() {
			defer relays.Done()
			p.connection(ctx, accepted)
			<-slots
		}()
	}
	_ = listener.Close()
	p.closeAll()
	relays.Wait()
	p.queue.close()
	<-p.printed
	if ctx.Err() != nil {
		return nil
	}
	return failure
}

// isTemporary reports whether accepting may succeed later: too many files are open, or a client was gone already.
func isTemporary(err error) bool {
	var failure *net.OpError
	return errors.As(err, &failure) && !errors.Is(err, net.ErrClosed)
}

// Summary says what was relayed.
func (p *Proxy) Summary() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return fmt.Sprintf("%d connections; from clients %d frames in %d bytes, from the broker %d frames in %d bytes",
		p.connections, p.totals.frames[client], p.totals.octets[client], p.totals.frames[broker], p.totals.octets[broker])
}

// connection relays one connection in both directions until both have ended.
func (p *Proxy) connection(ctx context.Context, fromClient net.Conn) {
	defer fromClient.Close()
	number, open := p.begin(fromClient)
	defer p.end(fromClient)
	if !open {
		return
	}
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	toBroker, err := p.options.Dial(dialing)
	cancel()
	if err != nil {
		p.note(number, eventUnreachable, err.Error(), totals{})
		return
	}
	defer toBroker.Close()
	defer p.end(toBroker)
	if !p.add(toBroker) {
		return
	}
	p.note(number, eventOpen, fmt.Sprintf("%v to %v", fromClient.RemoteAddr(), toBroker.RemoteAddr()), totals{})

	var passed totals
	var other sync.WaitGroup
	other.Add(1)
	go func() {
		defer other.Done()
		relay(fromClient, toBroker, p.scanner(number, broker, &passed), &p.buffers)
	}()
	relay(toBroker, fromClient, p.scanner(number, client, &passed), &p.buffers)
	other.Wait()
	p.note(number, eventClose, "", passed)
}

func (p *Proxy) scanner(connection uint64, from side, passed *totals) *scanner {
	return &scanner{
		queue: p.queue, connection: connection, from: from, bodyMax: max(p.options.BodyMax, 0), totals: passed,
	}
}

// note records an event, and adds up what has passed.
func (p *Proxy) note(connection uint64, event event, text string, passed totals) {
	p.mutex.Lock()
	for from := range passed.frames {
		p.totals.frames[from] += passed.frames[from]
		p.totals.octets[from] += passed.octets[from]
	}
	p.mutex.Unlock()
	p.queue.put(record{
		time: time.Now(), connection: connection, event: event, text: text, totals: passed,
	}, nil)
}

// begin counts a client's connection, and adds it.
func (p *Proxy) begin(connection net.Conn) (number uint64, open bool) {
	open = p.add(connection)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.connections++
	return p.connections, open
}

// add remembers a connection, to be closed when the proxy is; it returns false when that is going on already.
func (p *Proxy) add(connection net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.open[connection] = struct{}{}
	return !p.closed
}

func (p *Proxy) end(connection net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.open, connection)
}

func (p *Proxy) closeAll() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	for connection := range p.open {
		_ = connection.Close()
	}
}
