package uninstall

// What scripts read: the start of each line.
const (
	textRemoved     = "removed: "
	textWouldRemove = "would remove: "
	textFailed      = "not removed: "
	textNothing     = "nothing to remove"
)

// textLeft says what stays on purpose.
const textLeft = `left as they are:
  logs in /var/log/aws-routed-eni
  kernel settings (rp_filter and accept_ra of the primary link, tcp_early_demux, IPv6 and IP forwarding)
    and the MTU of links: their values before are not known, and others on the node may rely on them;
    a reboot resets them
  the reference CNI plugins (loopback, host-local, ...), portmap and portmap.reference, which other
    networks use; portmap needs portmap.reference beside it
  secondary ENIs: they stay attached, with their addresses in EC2, and their links up, without address
  empty tables of iptables, which are not the daemon's alone
`
