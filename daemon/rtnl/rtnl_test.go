package rtnl_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/daemon/rtnl"
)

func TestError(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err  rtnl.Error
		want string
	}{
		{rtnl.Error{Op: "add route", Errno: unix.EEXIST}, "add route: file exists"},
		{rtnl.Error{Op: "add route", Errno: unix.EINVAL, Detail: "Nexthop has invalid gateway"}, "add route: invalid argument (Nexthop has invalid gateway)"},
	} {
		if got := row.err.Error(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
		if !errors.Is(&row.err, row.err.Errno) {
			t.Errorf("%v is not its errno", &row.err)
		}
	}
}

// answer is one netlink message.
func answer(kind, flags uint16, seq uint32, body ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, body...)
}

// FuzzParseAnswer: no datagram makes a decoder panic.
func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte{})
	f.Add(answer(unix.NLMSG_ERROR, 0, 1, 0, 0, 0, 0))
	f.Add(answer(unix.NLMSG_ERROR, unix.NLM_F_ACK_TLVS, 2, append([]byte{0xef, 0xff, 0xff, 0xff}, make([]byte, 40)...)...))
	f.Add(answer(unix.NLMSG_ERROR, unix.NLM_F_ACK_TLVS|unix.NLM_F_CAPPED, 2, append([]byte{0xef, 0xff, 0xff, 0xff}, make([]byte, 40)...)...))
	f.Add(answer(unix.NLMSG_ERROR, unix.NLM_F_ACK_TLVS, 2, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Add(answer(unix.RTM_NEWLINK, 0, 1, make([]byte, 60)...))
	f.Add(answer(unix.RTM_NEWRULE, 0, 1, append(make([]byte, 12), 8, 0, 1, 0, 10, 0, 0, 1)...))
	f.Add(answer(unix.RTM_NEWADDR, 0, 1, append(make([]byte, 8), 3, 0, 1, 0)...))
	f.Fuzz(func(t *testing.T, b []byte) { _ = rtnl.ParseAnswer(b) })
}
