package rtnl

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SettleCarrier has the kernel act on a change of a link's carrier now. It would do so a
// moment later on its own, and until then drop what is sent over the link: asking ethtool
// whether there is a carrier is what catches up. Where it cannot be asked, the moment
// passes as usual.
func (c *Conn) SettleCarrier(link string) {
	value := struct{ command, data uint32 }{command: unix.ETHTOOL_GLINK}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}{data: unsafe.Pointer(&value)}
	if copy(request.name[:len(request.name)-1], link) < len(link) {
		return
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&value)
}
