package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
)

// accept handles each connection in a new goroutine, which ends with it.
func accept(l net.Listener, handle func(net.Conn)) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			handle(c)
		}()
	}
}

func answerLines(c net.Conn, name string) {
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if _, err := fmt.Fprintf(c, "%s %s\n", c.RemoteAddr(), name); err != nil {
			return // the peer is gone
		}
	}
}

func answerDatagrams(c net.PacketConn, name string) error {
	buffer := make([]byte, 1<<10)
	for {
		_, from, err := c.ReadFrom(buffer)
		if err != nil {
			return err
		}
		_, _ = c.WriteTo(fmt.Appendf(nil, "%s %s\n", from, name), from) // the peer retries
	}
}

// takeBytes counts bytes until the sender has closed its direction.
func takeBytes(c net.Conn) {
	n, err := io.Copy(io.Discard, c)
	if err == nil {
		_, _ = fmt.Fprintln(c, n) // an error means that the peer is gone
	}
}
