package tunnel

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"cnictl/testenv"
)

// TestShare: concurrent streams share a tunnel, which ends with the last of them.
func TestShare(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		shared, port := p.dialer(t, Options{Protocol: protocol}).Share(aPod), echo(t)
		talk := func(c net.Conn) {
			t.Helper()
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		dial := func() net.Conn {
			t.Helper()
			c, err := shared.Dial(t.Context(), port)
			if err != nil {
				t.Fatal(err)
			}
			talk(c)
			return c
		}
		a, b := dial(), dial()
		a.Close()
		a.Close()
		talk(b)
		c := dial()
		b.Close()
		c.Close()
		if n := p.upgraded(protocol); n != 1 {
			t.Errorf("%d tunnels", n)
		}
		d := dial()
		if n := p.upgraded(protocol); n != 2 {
			t.Errorf("%d tunnels after all were closed", n)
		}
		shared.open.Close() // it broke
		if _, err := d.Read(make([]byte, 1)); err == nil {
			t.Error("a stream of a broken tunnel")
		}
		dial().Close()
		d.Close()
	})
}

// TestShare_AtOnce: many concurrent streams, some with their own tunnels; all end.
func TestShare_AtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		shared, port := p.dialer(t, Options{Protocol: protocol}).Share(aPod), echo(t)
		var wait sync.WaitGroup
		for range 30 {
			wait.Go(func() {
				c, err := shared.Dial(t.Context(), port)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				_, _ = c.Write([]byte("x"))
				if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if shared.open != nil || len(shared.users) != 0 {
			t.Errorf("%v, %v", shared.open, shared.users)
		}
		testenv.Eventually(t, "all streams to end on the other side", func() bool { return p.streams() == 0 })
	})
}

// TestClose_LeavesNothing: no goroutine of a tunnel or an exec remains. Not parallel,
// because it counts goroutines.
func TestClose_LeavesNothing(t *testing.T) {
	functions := []string{"moby/spdystream", "daemon/fleet/tunnel.newMux", "daemon/fleet/tunnel.(*conn)", "daemon/fleet/tunnel.(*session)", "daemon/fleet/tunnel.forward",
		"client-go/tools/remotecommand", "net/http.(*persistConn)",
	}
	before := map[string]int{} // some of other tests' peers wait forever
	for _, what := range functions {
		before[what] = running(what)
	}
	for _, protocol := range protocols {
		p := newPeer(t, nil)
		d, port := p.dialer(t, Options{Protocol: protocol}), echo(t)
		for range 50 {
			c, err := d.Dial(t.Context(), aPod, port)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write([]byte("x"))
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		for range 5 {
			c, err := d.Exec(t.Context(), aPod, "aws-node", []string{"shout"})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		p.CloseClientConnections()
		d.Close()
		for _, what := range functions {
			testenv.Eventually(t, "goroutines of "+what+" to end", func() bool { return running(what) <= before[what] })
		}
	}
}

// running counts the goroutines with a function on their stack, without those of the test's
// peer, which waits forever for replies that it could not send.
func running(function string) (count int) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for len(stacks) > 0 {
		end := len(stacks)
		if i := indexOf(stacks, "\n\n"); i >= 0 {
			end = i + 2
		}
		if indexOf(stacks[:end], function) >= 0 && indexOf(stacks[:end], "tunnel.(*server)") < 0 {
			count++
		}
		stacks = stacks[end:]
	}
	return count
}
