package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	statNames   = 1       // ETH_SS_STATS
	nameSize    = 32      // ETH_GSTRING_LEN
	maxCounters = 1 << 16 // of a driver
)

// counters returns the counters of a link's driver, as ethtool -S lists them, none if the driver
// has none.
func counters(socket int, link string) (map[string]uint64, error) {
	driver, err := unix.IoctlGetEthtoolDrvinfo(socket, link)
	if err != nil {
		return nil, fmt.Errorf("ask the driver of %s: %w", link, err)
	}
	n := int(driver.N_stats)
	if n == 0 || n > maxCounters {
		return nil, nil
	}
	names := make([]byte, 12+n*nameSize) // struct ethtool_gstrings
	binary.NativeEndian.PutUint32(names, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(names[4:], statNames)
	binary.NativeEndian.PutUint32(names[8:], uint32(n))
	if err := ethtool(socket, link, names); err != nil {
		return nil, err
	}
	values := make([]byte, 8+n*8) // struct ethtool_stats
	binary.NativeEndian.PutUint32(values, unix.ETHTOOL_GSTATS)
	binary.NativeEndian.PutUint32(values[4:], uint32(n))
	if err := ethtool(socket, link, values); err != nil {
		return nil, err
	}
	out := make(map[string]uint64, n)
	for i := range n {
		name, _, _ := bytes.Cut(names[12+i*nameSize:12+(i+1)*nameSize], []byte{0})
		out[string(name)] = binary.NativeEndian.Uint64(values[8+i*8:])
	}
	return out, nil
}

// ethtool makes the kernel answer a command in the command's own buffer.
func ethtool(socket int, link string, command []byte) error {
	var request struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], link)
	request.data = unsafe.Pointer(&command[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(command)
	if errno != 0 {
		return fmt.Errorf("ask the driver of %s: %w", link, errno)
	}
	return nil
}
