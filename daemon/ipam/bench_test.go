package ipam

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// The benchmarks' book is the largest on a real node: 15 ENIs with 50 secondary IPs each, 750
// addresses.
const (
	benchENIs  = 15
	benchSlots = 50
)

var benchStart = time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC)

func benchBook(tb testing.TB, assigned int) *Book {
	b := New(Options{Cooldown: 30 * time.Second})
	for i := range benchENIs {
		e := AttachENI{ENI: ENI{ID: ENIID(fmt.Sprintf("eni-%017d", i)), Device: i, Primary: i == 0, RouteTable: i + 1}}
		for j := range benchSlots {
			a := netip.AddrFrom4([4]byte{10, 0, byte(i), byte(j + 10)})
			e.CIDRs = append(e.CIDRs, netip.PrefixFrom(a, 32))
		}
		mustApply(tb, b, benchStart, e)
	}
	for i := range assigned {
		mustApply(tb, b, benchStart, benchAssign(i))
	}
	return b
}

// benchBook6 is a book of the same size in an IPv6 cluster: all pods share one /80.
func benchBook6(tb testing.TB, assigned int) *Book {
	b := New(Options{Cooldown: 30 * time.Second})
	mustApply(tb, b, benchStart, AttachENI{ENI: ENI{ID: "eni-0", Primary: true, RouteTable: 254}, CIDRs: []netip.Prefix{netip.MustParsePrefix("2001:db8::/80")}})
	for i := range assigned {
		mustApply(tb, b, benchStart, benchAssign6(i))
	}
	return b
}

func benchAssign6(i int) Assign {
	a := benchAssign(i)
	a.Kind, a.Family = Prefixes, IPv6
	return a
}

// benchFamilies are the two kinds of cluster.
var benchFamilies = []struct {
	name   string
	book   func(testing.TB, int) *Book
	assign func(int) Assign
}{{"", benchBook, benchAssign}, {"IPv6/", benchBook6, benchAssign6}}

func benchAssign(i int) Assign {
	return Assign{Sandbox: benchSandbox(i), Pod: Pod{Namespace: "default", Name: fmt.Sprintf("web-%d", i), Interfaces: 1}, Family: IPv4}
}

func benchSandbox(i int) Sandbox {
	return Sandbox{Network: "aws-cni", ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0"}
}

func mustApply(tb testing.TB, b *Book, now time.Time, ev Event) Change {
	tb.Helper()
	ch, err := b.Apply(now, ev)
	if err != nil {
		tb.Fatalf("%T%+v: %v", ev, ev, err)
	}
	return ch
}

// BenchmarkAssign gives an address to one more pod on a node with this many. The Revert that
// makes room again is not timed.
func BenchmarkAssign(b *testing.B) {
	for _, f := range benchFamilies {
		for _, assigned := range []int{10, 100, 700, 749} {
			b.Run(fmt.Sprintf("%spods=%d", f.name, assigned), func(b *testing.B) {
				book := f.book(b, assigned)
				var assign Event = f.assign(assigned)
				var revert Event = Revert{Sandbox: benchSandbox(assigned)}
				b.ReportAllocs()
				for b.Loop() {
					mustApply(b, book, benchStart, assign)
					b.StopTimer()
					mustApply(b, book, benchStart, revert)
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkUnassign ends an assignment while an earlier one's cooldown ends, as in a steady
// state.
func BenchmarkUnassign(b *testing.B) {
	for _, f := range benchFamilies {
		for _, assigned := range []int{10, 100, 700, 750} {
			b.Run(fmt.Sprintf("%spods=%d", f.name, assigned), func(b *testing.B) {
				book := f.book(b, assigned)
				now := benchStart
				var assign Event = f.assign(assigned - 1)
				var unassign Event = Unassign{Sandbox: benchSandbox(assigned - 1)}
				b.ReportAllocs()
				for b.Loop() {
					mustApply(b, book, now, unassign)
					b.StopTimer()
					now = now.Add(31 * time.Second)
					mustApply(b, book, now, assign)
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkChurn measures an ADD and a DEL together, without stopping the timer.
func BenchmarkChurn(b *testing.B) {
	for _, f := range benchFamilies {
		for _, assigned := range []int{10, 700} {
			b.Run(fmt.Sprintf("%spods=%d", f.name, assigned), func(b *testing.B) {
				book := f.book(b, assigned)
				now := benchStart
				var assign Event = f.assign(assigned)
				var unassign Event = Unassign{Sandbox: benchSandbox(assigned)}
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(31 * time.Second)
					mustApply(b, book, now, assign)
					mustApply(b, book, now, unassign)
				}
			})
		}
	}
}

// BenchmarkSnapshot builds a snapshot after one change.
func BenchmarkSnapshot(b *testing.B) {
	for _, f := range benchFamilies {
		for _, assigned := range []int{10, 700} {
			b.Run(fmt.Sprintf("%spods=%d", f.name, assigned), func(b *testing.B) {
				book := f.book(b, assigned)
				var assign Event = f.assign(assigned)
				var revert Event = Revert{Sandbox: benchSandbox(assigned)}
				b.ReportAllocs()
				for b.Loop() {
					mustApply(b, book, benchStart, assign)
					book.Snapshot()
					mustApply(b, book, benchStart, revert)
				}
			})
		}
	}
}
