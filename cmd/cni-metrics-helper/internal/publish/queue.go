package publish

import (
	"sync"
	"time"
)

// Datum is the value of one metric at one time.
type Datum struct {
	Name  string
	Value float64
	At    time.Time
}

// maxQueued bounds the data waiting for CloudWatch: about a day of polls at the default
// interval.
const maxQueued = 60_000

// Queue holds data until they are sent. It is safe for concurrent use. The zero value is
// ready to use.
type Queue struct {
	mu   sync.Mutex
	data []Datum // guarded by mu; oldest first
	lost int     // guarded by mu; data dropped since the last call of Lost
}

// Add appends data. If there are too many, it drops the oldest.
func (q *Queue) Add(data ...Datum) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.data = append(q.data, data...)
	q.cut()
}

// take removes up to n data from the front.
func (q *Queue) take(n int) []Datum {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.data))
	out := q.data[:n:n]
	q.data = q.data[n:]
	return out
}

// giveBack puts data back at the front.
func (q *Queue) giveBack(data []Datum) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.data = append(append(make([]Datum, 0, len(data)+len(q.data)), data...), q.data...)
	q.cut()
}

func (q *Queue) cut() {
	if over := len(q.data) - maxQueued; over > 0 {
		q.data = q.data[over:]
		q.lost += over
	}
}

// Len returns how many data are waiting.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.data)
}

// Lost returns how many data were dropped since the last call.
func (q *Queue) Lost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.lost
	q.lost = 0
	return n
}
