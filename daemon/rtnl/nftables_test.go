package rtnl

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHasGeneration(t *testing.T) {
	t.Parallel()
	answer := func(kind uint16, errno int32) []byte {
		b := make([]byte, unix.SizeofNlMsghdr+4)
		binary.NativeEndian.PutUint32(b, uint32(len(b)))
		binary.NativeEndian.PutUint16(b[offType:], kind)
		binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr:], uint32(-errno))
		return b
	}
	for name, row := range map[string]struct {
		answer []byte
		want   bool
		err    error
	}{
		"a generation":     {answer(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN, 0), true, nil},
		"no netlink":       {answer(unix.NLMSG_ERROR, int32(unix.EINVAL)), false, nil},
		"no such messages": {answer(unix.NLMSG_ERROR, int32(unix.EOPNOTSUPP)), false, nil},
		"no rights":        {answer(unix.NLMSG_ERROR, int32(unix.EPERM)), false, unix.EPERM},
		"cut off":          {answer(unix.NLMSG_ERROR, 0)[:6], false, errShort},
	} {
		got, err := hasGeneration(row.answer)
		if got != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
