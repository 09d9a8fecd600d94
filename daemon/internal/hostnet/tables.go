package hostnet

import (
	"encoding/binary"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// tablesInUse lists the route tables of a family that hold a route.
func tablesInUse(family uint8) (tables []int, _ error) {
	dump, err := syscall.NetlinkRIB(unix.RTM_GETROUTE, int(family))
	if err != nil {
		return nil, fmt.Errorf("list route tables: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return nil, fmt.Errorf("parse list of route tables: %w", err)
	}
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg || m.Data[0] != family {
			continue
		}
		table := int(m.Data[4])
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, fmt.Errorf("parse list of route tables: %w", err)
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.RTA_TABLE && len(a.Value) >= 4 {
				table = int(binary.NativeEndian.Uint32(a.Value))
			}
		}
		tables = append(tables, table)
	}
	slices.Sort(tables)
	return slices.Compact(tables), nil
}
