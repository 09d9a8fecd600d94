package node

import (
	"context"
	"errors"
	"strings"
	"sync"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// iptables makes the programs of both backends and of nftables print what they hold. A backend
// without its programs or its kernel part holds nothing.
func (c *collector) iptables(ctx context.Context) (evidence.IPTables, error) {
	var s reading.Saves
	program, err := find("iptables")
	if err != nil {
		return evidence.IPTables{}, err
	}
	version, err := run(ctx, program, "--version")
	if err != nil {
		return evidence.IPTables{}, err
	}
	mode := "legacy" // releases before 1.8 do not say so
	if strings.Contains(version, "nf_tables") {
		mode = "nft"
	}
	var all sync.WaitGroup
	var own error     // of the backend that iptables works with
	var slow [4]error // a listing that does not end may hold anything
	for i, p := range []struct {
		program string
		into    *string
	}{
		{"iptables-nft-save", &s.NFT}, {"ip6tables-nft-save", &s.NFT6}, {"iptables-legacy-save", &s.Legacy},
		{"ip6tables-legacy-save", &s.Legacy6},
	} {
		if strings.Contains(p.program, "legacy") && !c.legacy(p.program) {
			continue
		}
		all.Go(func() {
			program, err := find(p.program)
			if plain := strings.Replace(p.program, "-"+mode, "", 1); err != nil && plain != p.program {
				program, err = find(plain)
			}
			if err == nil {
				*p.into, err = run(ctx, program)
			}
			if p.program == "iptables-"+mode+"-save" {
				own = err
			}
			if ctx.Err() != nil {
				slow[i] = err
			}
		})
	}
	var chains string
	all.Go(func() {
		program, err := find("nft")
		if err != nil {
			return
		}
		ctx, cancel := c.spare(ctx) // what iptables holds is known without it
		defer cancel()
		if tables, err := run(ctx, program, "list", "tables"); err == nil {
			s.Tables = &tables
		}
		chains, _ = run(ctx, program, "list", "chains") // an empty list is no hint
	})
	if env, err := c.environment(); err == nil {
		s.IPv6 = env["aws-node"]["ENABLE_IPv6"] == "true"
	}
	all.Wait()
	if err := errors.Join(append(slow[:], own, ctx.Err())...); err != nil {
		return evidence.IPTables{}, err
	}
	if c.contained {
		mode = hostMode(s, chains, mode)
	}
	return reading.IPTables(mode, s)
}

// legacy reports whether the legacy backend has any table. Its program would load the kernel's
// modules to find out.
func (c *collector) legacy(program string) bool {
	file := "ip_tables_names"
	if strings.HasPrefix(program, "ip6") {
		file = "ip6_tables_names"
	}
	text, err := c.read("/proc/thread-self/net/" + file)
	return err == nil && len(text) > 0
}

// hostMode returns the backend of the host's own iptables as seen from a container, which has
// its own: it goes by what kubelet and others leave in it.
func hostMode(s reading.Saves, chains, plain string) string {
	traces := func(saves ...string) (t rules.Traces) {
		for _, save := range saves {
			if set, err := iptables.ParseSave(save); err == nil {
				t = t.Add(rules.TracesOf(set))
			}
		}
		return t
	}
	nft := traces(s.NFT, s.NFT6)
	if hint := rules.NFTHint(chains); hint != "" {
		nft.Hint = hint
	}
	modes := map[rules.Backend]string{rules.NFTables: "nft", rules.IPTables: "legacy"}
	own := rules.NFTables
	if plain == modes[rules.IPTables] {
		own = rules.IPTables
	}
	backend, _ := rules.HostBackend(nft, traces(s.Legacy, s.Legacy6), own)
	return modes[backend]
}
