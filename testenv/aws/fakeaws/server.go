package fakeaws

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Server serves a world's two APIs on two listeners.
type Server struct {
	EC2URL  string // for AWS_ENDPOINT_URL_EC2, _EKS and _IAM, and AWS_EC2_ENDPOINT
	IMDSURL string // for AWS_EC2_METADATA_SERVICE_ENDPOINT
	// ControlURL is where the control API listens, "" if it does not.
	ControlURL string

	servers []*http.Server
	done    sync.WaitGroup
}

// ServerOptions configure the addresses of a Server and how it identifies callers.
type ServerOptions struct {
	EC2Addr  string // default: a free port on 127.0.0.1
	IMDSAddr string
	// ControlAddr is the loopback address of the control API, "" to leave it off.
	ControlAddr string

	Identify func(*http.Request) string // see IMDSHandler; EC2 calls it for unknown access keys
	Observe  func(Call)                 // may be nil; called for every answered EC2 request, concurrently
}

// NewServer serves a world on free loopback ports. The metadata service treats every
// caller as instanceID. Close it when done.
func NewServer(w *World, instanceID string) (*Server, error) {
	return Listen(w, ServerOptions{Identify: OneInstance(instanceID)})
}

// Listen serves a world on given addresses.
func Listen(w *World, o ServerOptions) (*Server, error) {
	s := new(Server)
	var err error
	if s.EC2URL, err = s.listen(o.EC2Addr, &ec2Server{w, o.Identify, o.Observe}); err != nil {
		return nil, err
	}
	if s.IMDSURL, err = s.listen(o.IMDSAddr, IMDSHandler(w, o.Identify)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if o.ControlAddr == "" {
		return s, nil
	}
	if err := checkLoopback(o.ControlAddr); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.ControlURL, err = s.listen(o.ControlAddr, controlHandler(w)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkLoopback refuses addresses that other machines can reach.
func checkLoopback(addr string) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("listen for control on %q: a loopback address like 127.0.0.1:0 is accepted", addr)
	}
	return nil
}

func (s *Server) listen(addr string, h http.Handler) (url string, err error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen on %s: %w", addr, err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	s.servers = append(s.servers, srv)
	s.done.Go(func() { _ = srv.Serve(l) }) // returns ErrServerClosed after Close
	return "http://" + l.Addr().String(), nil
}

// Env lists the environment variables that point a program at the servers, with
// credentials that the world accepts.
func (s *Server) Env() []string {
	return []string{"AWS_ENDPOINT_URL_EC2=" + s.EC2URL, "AWS_ENDPOINT_URL_EKS=" + s.EC2URL, "AWS_ENDPOINT_URL_IAM=" + s.EC2URL, "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + s.IMDSURL,
		"AWS_ACCESS_KEY_ID=AKIAFAKEAWSFAKEAWS00", "AWS_SECRET_ACCESS_KEY=fake"}
}

// Close stops both servers immediately.
func (s *Server) Close() error {
	var errs []error
	for _, srv := range s.servers {
		errs = append(errs, srv.Close())
	}
	s.done.Wait()
	return errors.Join(errs...)
}
