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
	// Queue, Exchange and Key are patterns of [path.Match] for the names in what is shown; those that are empty match
	// everything. What is shown of a method goes for its message and its answer too.
	Queue, Exchange, Key string
	// Record takes everything that passes, as a capture of packets; nil takes nothing.
	Record io.Writer
	// Warn is told, once, that the output failed.
	Warn func(problem string)
	// replay is set when a capture is shown instead of what is relayed.
	replay bool
	// ConnectionsMax is how many connections are relayed at once; further ones wait to be accepted.
	ConnectionsMax int
}

// A Proxy relays connections and shows their frames.
type Proxy struct {
	options  Options
	queue    *queue
	printer  *printer
	printed  chan struct{}
	recorder *recorder
	buffers  busyBuffers

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
	p.printer = newPrinter(&p.options)
	if options.Record != nil {
		p.recorder = newRecorder(options.Record, options.Warn)
	}
	go func() {
		p.printer.run(p.queue)
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
	p.recorder.close()
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

// Summary says what was relayed, once [Proxy.Serve] has returned: a line for everything, then a table of the methods.
func (p *Proxy) Summary() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return summary(p.connections, &p.totals, p.printer.tracker)
}

func summary(connections uint64, passed *totals, tracker *tracker) string {
	return fmt.Sprintf("%d connections; from clients %d frames in %d bytes, from the broker %d frames in %d bytes\n%s",
		connections, passed.frames[client], passed.bytes[client], passed.frames[broker], passed.bytes[broker],
		tracker.stats.table())
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
	recorded := p.recorder.connection(fromClient.RemoteAddr(), toBroker.RemoteAddr())
	other.Add(1)
	go func() {
		defer other.Done()
		relay(fromClient, toBroker, p.scanner(number, broker, &passed), recorded, &p.buffers)
	}()
	relay(toBroker, fromClient, p.scanner(number, client, &passed), recorded, &p.buffers)
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
		p.totals.bytes[from] += passed.bytes[from]
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
