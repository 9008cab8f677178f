package tap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// packetMax is the largest packet that is believed; what captures hold is a quarter of it at most.
const packetMax = 1 << 20

// Kinds of links, which say what a packet begins with.
const (
	linkNull     = 0
	linkEthernet = 1
	linkLoop     = 108
	linkCooked   = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkCooked2  = 276
)

// A capture reads the packets of a file that tcpdump or Wireshark has written.
type capture struct {
	input  *bufio.Reader
	order  binary.ByteOrder
	nanos  bool
	link   uint32
	packet []byte
}

func openCapture(input io.Reader) (*capture, error) {
	c := &capture{input: bufio.NewReaderSize(input, 64*1024), order: binary.LittleEndian}
	header := make([]byte, pcapHeaderSize)
	if _, err := io.ReadFull(c.input, header); err != nil {
		return nil, errors.New("this is no capture: it has less than 24 bytes")
	}
	if binary.BigEndian.Uint32(header) == 0x0a0d0d0a {
		return nil, errors.New("this capture is in the format pcapng; convert it with: editcap -F pcap FILE NEW-FILE")
	}
	magic := binary.LittleEndian.Uint32(header)
	if magic != pcapMagicMicros && magic != pcapMagicNanos {
		c.order, magic = binary.BigEndian, binary.BigEndian.Uint32(header)
	}
	if magic != pcapMagicMicros && magic != pcapMagicNanos {
		return nil, fmt.Errorf("this is no capture: it begins with %x", header[:4])
	}
	c.nanos = magic == pcapMagicNanos
	// The upper bits say whether packets end with a check of the link, which the length of the IP packet leaves out anyway.
	c.link = c.order.Uint32(header[20:]) & 0xffff
	switch c.link {
	case linkNull, linkEthernet, linkRaw, linkLoop, linkCooked, linkIPv4, linkIPv6, linkCooked2:
		return c, nil
	default:
		return nil, fmt.Errorf("the capture is of a kind of link that is not known here (%d)", c.link)
	}
}

// next returns the time and the bytes of the next packet, which are good until the one after. The error is [io.EOF] at the
// end, also within a packet: a capture may be read while it is written.
func (c *capture) next() (time.Time, []byte, error) {
	var header [packetHeader]byte
	if _, err := io.ReadFull(c.input, header[:]); err != nil {
		return time.Time{}, nil, endOfFile(err)
	}
	size := c.order.Uint32(header[8:])
	if size > packetMax {
		return time.Time{}, nil, fmt.Errorf("the capture is damaged: a packet of %d bytes", size)
	}
	if uint32(cap(c.packet)) < size {
		c.packet = make([]byte, size)
	}
	c.packet = c.packet[:size]
	if _, err := io.ReadFull(c.input, c.packet); err != nil {
		return time.Time{}, nil, endOfFile(err)
	}
	fraction := int64(c.order.Uint32(header[4:]))
	if !c.nanos {
		fraction *= 1000
	}
	return time.Unix(int64(c.order.Uint32(header[:])), fraction), c.packet, nil
}

func endOfFile(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// network returns what lies behind the link's header of a packet: an IP packet, or nothing.
func (c *capture) network(packet []byte) []byte {
	skip := 0
	switch c.link {
	case linkNull, linkLoop:
		skip = 4
	case linkEthernet:
		skip = 14
		// Tags of virtual networks lie between the addresses and the type.
		for len(packet) >= skip && packet[skip-2] == 0x81 && packet[skip-1] == 0 {
			skip += 4
		}
	case linkCooked:
		skip = 16
	case linkCooked2:
		skip = 20
	}
	return packet[min(skip, len(packet)):]
}

// A segment is a packet of TCP.
type segment struct {
	source, target netip.AddrPort
	sequence       uint32
	flags          byte
	data           []byte
	// missing is how many bytes of data the capture has cut off.
	missing int
}

// parseSegment reads an IP packet; ok is false when it holds no whole header of TCP.
func parseSegment(packet []byte) (s segment, ok bool) {
	if len(packet) < ipv4Header {
		return s, false
	}
	var source, target netip.Addr
	var header, total int
	switch packet[0] >> 4 {
	case 4:
		header, total = int(packet[0]&15)*4, int(binary.BigEndian.Uint16(packet[2:]))
		fragment := binary.BigEndian.Uint16(packet[6:]) & 0x3fff
		if packet[9] != protoTCP || fragment != 0 || header < ipv4Header {
			return s, false
		}
		source, _ = netip.AddrFromSlice(packet[12:16])
		target, _ = netip.AddrFromSlice(packet[16:20])
	case 6:
		if len(packet) < ipv6Header {
			return s, false
		}
		header = ipv6Header
		if length := int(binary.BigEndian.Uint16(packet[4:])); length > 0 {
			total = header + length
		}
		kind := packet[6]
		// Options lie between the two headers.
		for kind == 0 || kind == 43 || kind == 60 {
			if len(packet) < header+2 {
				return s, false
			}
			kind, header = packet[header], header+8*(int(packet[header+1])+1)
		}
		if kind != protoTCP {
			return s, false
		}
		source, _ = netip.AddrFromSlice(packet[8:24])
		target, _ = netip.AddrFromSlice(packet[24:40])
	default:
		return s, false
	}
	if total == 0 {
		// What a network card is to cut into packets has no length yet.
		total = len(packet)
	}
	if len(packet) < header+tcpHeader {
		return s, false
	}
	tcp := packet[header:]
	offset := int(tcp[12]>>4) * 4
	length := total - header - offset
	if offset < tcpHeader || length < 0 || len(tcp) < offset {
		return s, false
	}
	data := tcp[offset:]
	data = data[:min(len(data), length)]
	return segment{
		source: netip.AddrPortFrom(source, binary.BigEndian.Uint16(tcp)), target: netip.AddrPortFrom(target, binary.BigEndian.Uint16(tcp[2:])),
		sequence: binary.BigEndian.Uint32(tcp[4:]), flags: tcp[13], data: data, missing: length - len(data),
	}, true
}
