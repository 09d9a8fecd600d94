package rtnl

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SettleCarrier makes the kernel process a change of a link's carrier now. Otherwise it
// does so a moment later, and until then drops packets sent over the link. Asking ethtool
// whether there is a carrier makes it catch up. If ethtool cannot be asked, the delay
// remains.
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
