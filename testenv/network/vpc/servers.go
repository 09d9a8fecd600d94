package vpc

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/netns"
)

// servers are the metadata service and the EC2 API, listening in the fabric.
type servers struct {
	list []*http.Server
	wg   sync.WaitGroup

	mu   sync.Mutex // guards errs
	errs []error
}

func startServers(ns *netns.NS, world *fakeaws.World, instanceOf func(netip.Addr) string) (*servers, error) {
	// The source address of a request identifies the instance. Addresses that belong to no
	// instance get the answer for an unknown instance.
	identify := func(r *http.Request) string {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return ""
		}
		return instanceOf(from.Addr())
	}
	s := &servers{}
	for at, handler := range map[netip.AddrPort]http.Handler{
		IMDS: fakeaws.IMDSHandler(world, identify),
		EC2:  fakeaws.EC2Handler(world),
	} {
		if err := s.start(ns, at, handler); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *servers) start(ns *netns.NS, at netip.AddrPort, h http.Handler) error {
	l, err := ns.Listen("tcp", at.String())
	if err != nil {
		return fmt.Errorf("serve %s: %w", at, err)
	}
	// Its log would only report connections that nodes broke off.
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.list = append(s.list, server)
	s.wg.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, fmt.Errorf("serve %s: %w", at, err))
		}
	})
	return nil
}

// close aborts all requests: the nodes are gone or about to be.
func (s *servers) close() error {
	var errs []error
	for _, server := range s.list {
		errs = append(errs, server.Close())
	}
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(errs, s.errs...)...)
}
