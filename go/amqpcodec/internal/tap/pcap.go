package tap

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A capture file: a header, then packets, each behind a header of its own.
	pcapMagicNanos  = 0xa1b23c4d
	pcapMagicMicros = 0xa1b2c3d4
	pcapHeaderSize  = 24
	packetHeader    = 16
	// linkRaw is packets that begin with their IP header.
	linkRaw = 101

	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	protoTCP   = 6

	flagFin = 1
	flagSyn = 2
	flagPsh = 8
	flagAck = 16

	// segmentMax is how many bytes of a stream go into one packet: the length of an IPv4 packet has 16 bits.
	segmentMax = 32 * 1024
	// recordMax is how many bytes of packets wait to be written at most, and as many again are being written.
	recordMax = 16 << 20
)

// A recorder writes what passes as the packets of a capture file, which Wireshark and tcpdump read. Relays never wait for
// it: what there is no room for is left out and counted.
type recorder struct {
	output  io.Writer
	warn    func(string)
	mutex   sync.Mutex
	filling []byte
	dropped int64
	closed  bool
	ready   chan struct{}
	done    chan struct{}
}

func newRecorder(output io.Writer, warn func(string)) *recorder {
	r := &recorder{output: output, warn: warn, ready: make(chan struct{}, 1), done: make(chan struct{})}
	r.filling = binary.LittleEndian.AppendUint32(r.filling, pcapMagicNanos)
	r.filling = append(r.filling, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	r.filling = binary.LittleEndian.AppendUint32(r.filling, 256*1024)
	r.filling = binary.LittleEndian.AppendUint32(r.filling, linkRaw)
	go r.run()
	r.wake()
	return r
}

// run writes what was gathered meanwhile, until the recorder is closed. When it can't, it says so and takes no more.
func (r *recorder) run() {
	defer close(r.done)
	var writing []byte
	failed := false
	for range r.ready {
		r.mutex.Lock()
		r.filling, writing = writing[:0], r.filling
		closed := r.closed
		r.mutex.Unlock()
		if !failed && len(writing) > 0 {
			if _, err := r.output.Write(writing); err != nil {
				failed = true
				r.warn(fmt.Sprintf("nothing more is recorded (%v); relaying goes on", err))
			}
		}
		if closed {
			return
		}
	}
}

func (r *recorder) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// close returns when everything is written.
func (r *recorder) close() {
	if r == nil {
		return
	}
	r.mutex.Lock()
	r.closed = true
	dropped := r.dropped
	r.mutex.Unlock()
	r.wake()
	<-r.done
	if dropped > 0 {
		r.warn(fmt.Sprintf("%d packets are not in the recording: the disk could not keep up", dropped))
	}
}

func (r *recorder) put(packet []byte) {
	r.mutex.Lock()
	if r.closed || len(r.filling)+len(packet) > recordMax {
		r.dropped++
	} else {
		r.filling = append(r.filling, packet...)
	}
	r.mutex.Unlock()
	r.wake()
}

// A recorded is a connection whose bytes become packets. Of nil, nothing does.
type recorded struct {
	recorder *recorder
	// ends are the client's and the broker's addresses; sent is how many bytes came from each, the opening packet included.
	ends [2]netip.AddrPort
	sent [2]atomic.Uint32
}

// connection begins a connection with the three packets that open one.
func (r *recorder) connection(fromClient, toBroker net.Addr) *recorded {
	if r == nil {
		return nil
	}
	c := &recorded{recorder: r, ends: [2]netip.AddrPort{addressOf(fromClient), addressOf(toBroker)}}
	if c.ends[client].Addr().Is4() != c.ends[broker].Addr().Is4() {
		for i, end := range c.ends {
			c.ends[i] = netip.AddrPortFrom(netip.AddrFrom16(end.Addr().As16()), end.Port())
		}
	}
	now := time.Now()
	c.packet(client, flagSyn, nil, now)
	c.sent[client].Store(1)
	c.packet(broker, flagSyn|flagAck, nil, now)
	c.sent[broker].Store(1)
	c.packet(client, flagAck, nil, now)
	return c
}

func addressOf(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		end := tcp.AddrPort()
		return netip.AddrPortFrom(end.Addr().Unmap().WithZone(""), end.Port())
	}
	return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
}

func (c *recorded) data(from side, data []byte, now time.Time) {
	if c == nil {
		return
	}
	for len(data) > 0 {
		piece := data[:min(len(data), segmentMax)]
		c.packet(from, flagPsh|flagAck, piece, now)
		c.sent[from].Add(uint32(len(piece)))
		data = data[len(piece):]
	}
}

// end is the end of what comes from one side.
func (c *recorded) end(from side) {
	if c != nil {
		c.packet(from, flagFin|flagAck, nil, time.Now())
	}
}

// packet records a packet from one side. Only that side's relay calls it, but for the packets that open a connection.
func (c *recorded) packet(from side, flags byte, data []byte, now time.Time) {
	other := broker - from
	source, target := c.ends[from], c.ends[other]
	ip := ipv4Header
	if source.Addr().Is6() {
		ip = ipv6Header
	}
	length := ip + tcpHeader + len(data)
	p := make([]byte, 0, packetHeader+length)
	p = binary.LittleEndian.AppendUint32(p, uint32(now.Unix()))
	p = binary.LittleEndian.AppendUint32(p, uint32(now.Nanosecond()))
	p = binary.LittleEndian.AppendUint32(p, uint32(length))
	p = binary.LittleEndian.AppendUint32(p, uint32(length))
	p = appendIP(p, source.Addr(), target.Addr(), tcpHeader+len(data))
	segment := len(p)
	p = binary.BigEndian.AppendUint16(p, source.Port())
	p = binary.BigEndian.AppendUint16(p, target.Port())
	p = binary.BigEndian.AppendUint32(p, c.sent[from].Load())
	acknowledged := uint32(0)
	if flags&flagAck != 0 {
		acknowledged = c.sent[other].Load()
	}
	p = binary.BigEndian.AppendUint32(p, acknowledged)
	p = append(p, tcpHeader/4<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	p = append(p, data...)
	pseudo := append(source.Addr().AsSlice(), target.Addr().AsSlice()...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(tcpHeader+len(data)))
	pseudo = append(pseudo, 0, 0, 0, protoTCP)
	binary.BigEndian.PutUint16(p[segment+16:], checksum(pseudo, p[segment:]))
	c.recorder.put(p)
}

// appendIP appends the header of a packet with so many bytes in it.
func appendIP(dst []byte, source, target netip.Addr, length int) []byte {
	start := len(dst)
	if source.Is6() {
		dst = append(dst, 0x60, 0, 0, 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(length))
		dst = append(dst, protoTCP, 64)
	} else {
		dst = append(dst, 0x45, 0)
		dst = binary.BigEndian.AppendUint16(dst, uint16(ipv4Header+length))
		dst = append(dst, 0, 0, 0x40, 0, 64, protoTCP, 0, 0)
	}
	dst = append(append(dst, source.AsSlice()...), target.AsSlice()...)
	if source.Is4() {
		binary.BigEndian.PutUint16(dst[start+10:], checksum(dst[start:]))
	}
	return dst
}

// checksum is the one of the internet protocols. All parts but the last have an even number of bytes.
func checksum(parts ...[]byte) uint16 {
	sum := uint64(0)
	for _, part := range parts {
		for len(part) >= 2 {
			sum += uint64(binary.BigEndian.Uint16(part))
			part = part[2:]
		}
		if len(part) == 1 {
			sum += uint64(part[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
