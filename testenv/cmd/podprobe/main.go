// Command podprobe is the workload of pods in testenv/kube/cluster. It answers over HTTP, TCP
// and UDP, and makes requests itself when asked to over HTTP, so that a test sees the
// network from inside a pod without a shell in it.
//
//	GET /healthz                         200, or 503 after /fail
//	GET /fail                            from now on /healthz fails
//	GET /source                          the address that the request came from
//	GET /ask?network=tcp&to=IP:PORT      a server's answer to a line; 502 with the error if none
//	GET /get?to=IP:PORT                  the answer of another podprobe's /source
//	GET /talk?to=IP:PORT                 a server's answers to lines over one connection, until the request ends
//	GET /send?to=IP:PORT&bytes=N         sends N bytes to a sink; answers the time until they arrived, in ms
//
// A line over TCP or UDP is answered with "<address it came from> <name of the pod>"; the
// sink counts bytes until the sender ends and answers the count.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var at addresses
	flag.StringVar(&at.http, "http", ":8080", "`address` of HTTP")
	flag.StringVar(&at.line, "line", ":7", "`address` that answers lines over TCP and UDP")
	flag.StringVar(&at.sink, "sink", ":9", "`address` that takes bytes over TCP")
	flag.Parse()
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	failed := make(chan error, 1)
	if err := serve(at, failed); err != nil {
		fmt.Fprintln(os.Stderr, "podprobe:", err)
		os.Exit(1)
	}
	fmt.Println("podprobe serves") // a log for tests to read
	select {
	case err := <-failed:
		fmt.Fprintln(os.Stderr, "podprobe:", err)
		os.Exit(1)
	case <-ends:
	}
}

// addresses are the addresses on which podprobe serves.
type addresses struct{ http, line, sink string }

// serve listens on all addresses and returns; a server that ends later sends on failed.
func serve(at addresses, failed chan<- error) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	web, err := net.Listen("tcp", at.http)
	if err != nil {
		return err
	}
	lines, err := net.Listen("tcp", at.line)
	if err != nil {
		return err
	}
	datagrams, err := net.ListenPacket("udp", at.line)
	if err != nil {
		return err
	}
	sink, err := net.Listen("tcp", at.sink)
	if err != nil {
		return err
	}
	go func() { failed <- serveHTTP(web) }() // all run for the life of the program
	go func() { failed <- accept(lines, func(c net.Conn) { answerLines(c, name) }) }()
	go func() { failed <- answerDatagrams(datagrams, name) }()
	go func() { failed <- accept(sink, takeBytes) }()
	return nil
}
