// Floor is the yardstick of make bench: the minimum that a process must do to give a pod its
// network. As a plugin it reads its input, requests an address from a server (one line out,
// one line in, over a Unix socket) and creates the same kernel objects as aws-cni, in
// batched netlink. It writes no log, checks nothing and undoes nothing. It avoids os, fmt and
// everything else with start-up cost, and the runtime's cgroup lookups. Whatever aws-cni needs
// beyond that is the price of being a real plugin.
//
//	floor                 run as a CNI plugin (ADD, DEL)
//	floor serve           answer addresses 10.100.0.2 and up, route table 2
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is where the server listens in a node of the bench.
const socket = "/run/floor.sock"

func main() {
	var err error
	switch command, _ := syscall.Getenv("CNI_COMMAND"); {
	case command == "ADD":
		err = add()
	case command == "DEL":
		err = del()
	default:
		err = serve(socket)
	}
	if err != nil {
		_, _ = unix.Write(2, append([]byte(err.Error()), '\n'))
		unix.Exit(1)
	}
}
