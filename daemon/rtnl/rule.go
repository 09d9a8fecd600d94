package rtnl

import (
	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
)

// ListedRule is a policy rule as the kernel lists it.
type ListedRule struct {
	netstate.Rule
	Detached bool // no link InLink exists now, so the rule applies to nothing
	// Maker is the unix.RTPROT_* that another program gave the rule. [Batch.RuleAdd] sets
	// none, the kernel's own is not listed, and kernels before 4.17 have none.
	Maker uint8
}

// RuleAdd adds a rule. EEXIST: exactly that rule exists.
func (b *Batch) RuleAdd(r netstate.Rule) {
	b.begin("add rule", unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b.rule(r, unix.FR_ACT_TO_TBL)
}

// RuleDel deletes the first matching rule. ENOENT: there is none.
func (b *Batch) RuleDel(r netstate.Rule) {
	b.begin("delete rule", unix.RTM_DELRULE, 0)
	b.rule(r, 0)
}

func (b *Batch) rule(r netstate.Rule, action uint8) {
	fam := uint8(unix.AF_INET)
	var from, to uint8
	if r.IPv6 {
		fam = unix.AF_INET6
	}
	if r.From.IsValid() {
		fam, from = Family(r.From.Addr()), uint8(r.From.Bits())
	}
	if r.To.IsValid() {
		fam, to = Family(r.To.Addr()), uint8(r.To.Bits())
	}
	small := uint8(unix.RT_TABLE_UNSPEC)
	if r.Table <= 255 {
		small = uint8(r.Table)
	}
	b.buf = append(b.buf, fam, to, from, 0, small, 0, 0, action)
	b.buf = appendU32(b.buf, 0)
	if from > 0 {
		b.attrAddr(unix.FRA_SRC, r.From.Addr())
	}
	if to > 0 {
		b.attrAddr(unix.FRA_DST, r.To.Addr())
	}
	b.attrU32(unix.FRA_PRIORITY, uint32(r.Priority))
	if r.Table > 0 {
		b.attrU32(unix.FRA_TABLE, uint32(r.Table))
	}
	if r.Mark != 0 || r.Mask != 0 {
		b.attrU32(unix.FRA_FWMARK, r.Mark)
		if r.Mask != 0 {
			b.attrU32(unix.FRA_FWMASK, r.Mask)
		}
	}
	if r.InLink != "" {
		b.attrText(unix.FRA_IIFNAME, r.InLink)
	}
	if r.Protocol != 0 {
		b.attr(unix.FRA_IP_PROTO, []byte{r.Protocol})
	}
	b.end()
}
