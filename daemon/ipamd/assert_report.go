package ipamd

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/notice"
)

// listedLosses is how many losses of a pass are listed individually.
const listedLosses = 5

// report logs what a pass restored, as one line and one event.
func (p *repairs) report() {
	if len(p.done) == 0 {
		return
	}
	counts := map[string]int{}
	var objects, texts []string
	for _, l := range p.done {
		if counts[l.Object]++; counts[l.Object] == 1 {
			objects = append(objects, l.Object)
		}
		if len(texts) < listedLosses && !slices.Contains(texts, l.Text) {
			texts = append(texts, l.Text)
		}
	}
	for object, n := range counts {
		p.metrics.HostStateRepaired(object, n)
	}
	detail := strings.Join(texts, "; ")
	if more := len(p.done) - len(texts); more > 0 {
		detail += "; and more"
	}
	p.log.Warn("host network state was removed and has been restored; the kernel does not say by which program",
		slog.Int(logline.KeyCount, len(p.done)), slog.String(logline.KeyReason, strings.Join(objects, ",")), slog.String(logline.KeyDetail, detail),
		slog.Duration(logline.KeyDuration, time.Since(p.now)))
	p.feed.Append(introspect.Event{At: p.now, Kind: introspect.EventHostStateRepaired, Reason: strings.Join(objects, ","), Message: detail})
	for object := range p.again {
		if !p.contested[object] {
			p.contested[object] = true
			p.log.Warn("host network state keeps being removed; restoring it with increasing delays",
				slog.String(logline.KeyReason, object), slog.String(logline.KeyDetail, knownCauses(object)))
		}
	}
	p.emit(objects, detail)
}

// emit sends an event about the Node.
func (a *asserter) emit(objects []string, detail string) {
	if a.api == nil {
		return
	}
	if node := a.api.OwnNode(); node.Name != "" {
		a.api.EmitLater(notice.HostNetworkChanged(node, objects, detail))
	}
}

// knownCauses names the programs known to remove such things.
func knownCauses(object string) string {
	switch object {
	case hostnet.ObjectPacketFilter:
		return "firewalld, or a script that restores a whole rule set: leave the chains AWS-* and the nft table aws-cni alone"
	case hostnet.ObjectEgressChain:
		return "firewalld, or a script that flushes or restores the nat table: leave the chains CNI-E4-* and CNI-E6-* and the jumps to them alone"
	case hostnet.ObjectSysctl:
		return "systemd-sysctl, tuned or NetworkManager: leave rp_filter of the primary interface at 2"
	case objectCheckpoint, objectSocket:
		return "a program that cleans /run: leave /run/aws-node alone"
	}
	return "systemd-networkd (set ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no, and let no .network file match ENIs of pods), nm-cloud-setup (disable it), or NetworkManager (make ENIs unmanaged)"
}
