package rtnl

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// HasNFTables reports whether the kernel has nf_tables, without running a program: it
// requests the generation of the rules in the namespace of the calling thread.
func HasNFTables() (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return false, nil
	}
	if err != nil {
		return false, &SocketError{Op: "open", Err: err}
	}
	defer unix.Close(fd)
	const size = unix.SizeofNlMsghdr + sizeofNFGen
	request := make([]byte, size)
	binary.NativeEndian.PutUint32(request, size)
	binary.NativeEndian.PutUint16(request[offType:], unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN)
	binary.NativeEndian.PutUint16(request[offFlags:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, &SocketError{Op: "send", Err: err}
	}
	answer := make([]byte, ackSize)
	n, _, err := unix.Recvfrom(fd, answer, 0) // the kernel answers before Sendto returns
	if err != nil {
		return false, &SocketError{Op: "receive", Err: err}
	}
	return hasGeneration(answer[:n])
}

// hasGeneration reads the answer: the kernel does not know such messages (EINVAL),
// permission is denied, or a generation.
func hasGeneration(answer []byte) (bool, error) {
	msg, _, err := cutMessage(answer)
	if err != nil {
		return false, err
	}
	if msg.kind != unix.NLMSG_ERROR {
		return true, nil
	}
	if len(msg.body) < 4 {
		return false, errShort
	}
	errno := unix.Errno(-int32(binary.NativeEndian.Uint32(msg.body)))
	if errno == unix.EINVAL || errno == unix.EOPNOTSUPP {
		return false, nil
	}
	return false, &SocketError{Op: "list nf_tables over", Err: errno}
}
