package tap

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	// idleBuffer is what a direction owns that has little to say, busyBuffer what it borrows when it has more.
	idleBuffer = 4 * 1024
	busyBuffer = 64 * 1024
)

// busyBuffers has those that no direction has borrowed.
type busyBuffers struct{ pool sync.Pool }

func (b *busyBuffers) borrow() *[busyBuffer]byte {
	if buffer, ok := b.pool.Get().(*[busyBuffer]byte); ok {
		return buffer
	}
	return new([busyBuffer]byte)
}

// relay looks at what comes from one side, and hands it on until that side ends.
func relay(to, from net.Conn, scanner *scanner, recorded *recorded, buffers *busyBuffers) {
	defer closeWrite(to)
	defer recorded.end(scanner.from)
	idle := make([]byte, idleBuffer)
	var busy *[busyBuffer]byte
	for {
		buffer := idle
		if busy != nil {
			buffer = busy[:]
		}
		n, err := from.Read(buffer)
		if n > 0 {
			// Before the other side has them, so that no answer is shown before its request.
			now := time.Now()
			scanner.feed(buffer[:n], now)
			recorded.data(scanner.from, buffer[:n], now)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		if scanner.lost && recorded == nil {
			break
		}
		switch {
		case busy == nil && n == len(idle):
			busy = buffers.borrow()
		case busy != nil && n < len(idle):
			buffers.pool.Put(busy)
			busy = nil
		}
	}
	// Nothing to look at any more: the system may move the bytes by itself.
	n, _ := io.Copy(to, from)
	scanner.totals.bytes[scanner.from] += n
}

// closeWrite tells a side that nothing more will come, and leaves the other direction open.
func closeWrite(connection net.Conn) {
	if half, ok := connection.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	_ = connection.Close()
}
