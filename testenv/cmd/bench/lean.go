package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv/npa"
)

// leanServer is a stand-in for the daemon. It answers the plugin's protocol from a
// counter, keeps no checkpoint and never runs out of addresses. Measurements with it show the
// plugin alone, and the table says so.
func leanServer() error {
	if err := os.MkdirAll(filepath.Dir(cniwire.Socket), 0o755); err != nil {
		return err
	}
	l, err := net.Listen("unix", cniwire.Socket)
	if err != nil {
		return err
	}
	s := &standIn{given: map[string]netip.Addr{}, last: 1}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if err := s.answer(conn); err != nil {
				fmt.Fprintln(os.Stderr, "bench: stand-in daemon:", err)
			}
		}()
	}
}

// policyAgent is a node's network policy agent that always reports success.
func policyAgent() error {
	a, err := npa.Start(npa.Options{Socket: filepath.Join(filepath.Dir(cniwire.Socket), "npa.sock")})
	if err != nil {
		return err
	}
	defer a.Close()
	select {} // until the node ends
}

type standIn struct {
	mu    sync.Mutex // guards given, last
	given map[string]netip.Addr
	last  uint32
}

func (s *standIn) answer(conn net.Conn) error {
	frame, err := cniwire.ReadFrame(conn, nil)
	if err != nil {
		return err
	}
	r, err := cniwire.DecodeRequest(frame)
	if err != nil {
		return err
	}
	var reply []byte
	if r.Add != nil {
		reply = cniwire.AppendAddReply(nil, &cniwire.AddReply{
			Success: true, VPCv4CIDRs: []string{"10.0.0.0/16"}, Allocations: s.allocation(s.give(r.Add.ContainerID)),
		})
	} else {
		address, known := s.take(r.Del.ContainerID)
		d := &cniwire.DelReply{Success: known, Unknown: !known}
		if known {
			d.Allocations = s.allocation(address)
		}
		reply = cniwire.AppendDelReply(nil, d)
	}
	_, err = conn.Write(reply)
	return err
}

func (s *standIn) allocation(a netip.Addr) []cniwire.Allocation {
	return []cniwire.Allocation{{IPv4: a.String(), Device: 1, RouteTable: 2}}
}

func (s *standIn) give(id string) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 10<<24|101<<16+s.last)
	a := netip.AddrFrom4(ip)
	s.given[id] = a
	return a
}

func (s *standIn) take(id string) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.given[id]
	delete(s.given, id)
	return a, ok
}
