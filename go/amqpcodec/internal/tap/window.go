package tap

import (
	"sort"
	"time"
)

// A sent is a message that waits to be confirmed or acknowledged.
type sent struct {
	tag uint64
	at  time.Time
	// wanted says that the message was shown; settled, that its answer has come before that of an earlier one.
	wanted, settled bool
}

// A window has the messages of a channel that wait for an answer, in the order of their tags.
type window struct {
	sent []sent
}

// add appends a message. Tags only rise; one that does not is not kept.
func (w *window) add(s sent) bool {
	if n := len(w.sent); n > 0 && s.tag <= w.sent[n-1].tag {
		return false
	}
	w.sent = append(w.sent, s)
	return true
}

// settle calls each with every message that an answer is for: that of a tag, or all up to it; 0 with multiple is all.
// It returns by how many messages the window is now shorter.
func (w *window) settle(tag uint64, multiple bool, each func(sent)) (freed int) {
	end := len(w.sent)
	if tag > 0 || !multiple {
		end = sort.Search(len(w.sent), func(i int) bool { return w.sent[i].tag >= tag })
		if end < len(w.sent) && w.sent[end].tag == tag {
			if !multiple {
				if !w.sent[end].settled {
					each(w.sent[end])
				}
				w.sent[end].settled = true
			} else {
				end++
			}
		}
	}
	if multiple {
		for i := range w.sent[:end] {
			if !w.sent[i].settled {
				each(w.sent[i])
				w.sent[i].settled = true
			}
		}
	}
	for freed < len(w.sent) && w.sent[freed].settled {
		freed++
	}
	w.sent = w.sent[freed:]
	return freed
}
