package main

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// serve answers one line per connection, one connection at a time: "A <id>" with a fresh
// address, "D <id>" with the address of that id.
func serve(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.Unlink(path)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 1024); err != nil {
		return err
	}
	given := map[string]netip.Addr{}
	var last uint32 = 1
	var buf [512]byte
	for {
		conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		n, _ := unix.Read(conn, buf[:])
		if n > 2 {
			id := string(buf[2:n])
			if buf[0] == 'A' {
				last++
				var ip [4]byte
				binary.BigEndian.PutUint32(ip[:], 10<<24|100<<16+last)
				given[id] = netip.AddrFrom4(ip)
			}
			_, _ = unix.Write(conn, []byte(given[id].String()+"\n"))
			if buf[0] == 'D' {
				delete(given, id)
			}
		}
		unix.Close(conn)
	}
}

// ask sends one line and returns the address in the reply.
func ask(verb byte, id string) (netip.Addr, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return netip.Addr{}, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		return netip.Addr{}, err
	}
	line := append(append(make([]byte, 0, 128), verb, ' '), id...)
	if _, err := unix.Write(fd, append(line, '\n')); err != nil {
		return netip.Addr{}, err
	}
	var buf [64]byte
	n, err := unix.Read(fd, buf[:])
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, buf[:])
	}
	if err != nil || n == 0 {
		return netip.Addr{}, errors.Join(errors.New("no answer"), err)
	}
	return netip.ParseAddr(string(buf[:n-1]))
}
