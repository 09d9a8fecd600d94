package rtnl

import "golang.org/x/sys/unix"

// LinkRename renames a link. The kernel requires it to be down.
func (b *Batch) LinkRename(index int32, name string) {
	b.begin("rename link", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, 0, 0)
	b.attrText(unix.IFLA_IFNAME, name)
	b.end()
}

// LinkDown sets a link down.
func (b *Batch) LinkDown(index int32) {
	b.begin("set link down", unix.RTM_NEWLINK, 0)
	b.ifinfo(index, 0, unix.IFF_UP)
	b.end()
}
