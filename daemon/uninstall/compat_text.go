package uninstall

// The start of each output line, for scripts.
const (
	textRemoved     = "removed: "
	textWouldRemove = "would remove: "
	textFailed      = "not removed: "
	textNothing     = "nothing to remove"
)

// textLeft lists what stays on purpose.
const textLeft = `left as they are:
  logs in /var/log/aws-routed-eni
  kernel settings (rp_filter and accept_ra of the primary link, tcp_early_demux, IPv6 and IP forwarding)
and the MTU of links: their previous values are unknown, and other software may rely on them;
    a reboot resets them
  the reference CNI plugins (loopback, host-local, ...), portmap and portmap.reference, which other
    networks use; portmap needs portmap.reference beside it
  what the network policy agent left: eBPF pins in /sys/fs/bpf/globals/aws until a reboot, and its
    files in the CNI's directory, aws-eks-na-cli and *.bpf.o
  secondary ENIs: they stay attached and keep their addresses in EC2; their links stay up, without addresses
  empty iptables tables, which other software uses too
`
