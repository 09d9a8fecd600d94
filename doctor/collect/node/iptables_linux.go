package node

import (
	"context"
	"strings"
	"sync"

	"cnictl/doctor/evidence"
	"cnictl/doctor/reading"
)

// iptables has the programs of both back ends and of nftables print what they hold.
func (c *collector) iptables(ctx context.Context) (evidence.IPTables, error) {
	var none evidence.IPTables
	program, err := find("iptables-save")
	if err != nil {
		return none, err
	}
	plain, err := run(ctx, program)
	if err != nil {
		return none, err
	}
	version, err := run(ctx, strings.TrimSuffix(program, "-save"), "--version")
	if err != nil {
		return none, err
	}
	mode := "legacy"
	if strings.Contains(version, "nf_tables") {
		mode = "nft"
	}
	var saves reading.Saves
	texts := map[string]*string{
		"iptables-nft-save": &saves.NFT, "ip6tables-nft-save": &saves.NFT6, "iptables-legacy-save": &saves.Legacy, "ip6tables-legacy-save": &saves.Legacy6,
	}
	*texts["iptables-"+mode+"-save"] = plain
	delete(texts, "iptables-"+mode+"-save")
	var all sync.WaitGroup
	errs := make(chan error, len(texts)+1)
	print := func(into *string, program string, args ...string) {
		all.Go(func() {
			file, err := find(program)
			if err == nil {
				*into, err = run(ctx, file, args...)
			}
			if ctx.Err() != nil {
				errs <- ctx.Err()
			} else if err != nil {
				*into = "" // without the program or its part of the kernel there is nothing to hold
			}
		})
	}
	for name, into := range texts {
		if !strings.Contains(name, "legacy") || c.legacy(name) {
			print(into, name)
		}
	}
	print(&saves.Tables, "nft", "list", "tables")
	if env, err := c.environment(ctx); err == nil {
		saves.IPv6 = env["aws-node"]["ENABLE_IPv6"] == "true"
	}
	all.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return none, err
	}
	return reading.IPTables(mode, saves)
}

// legacy reports whether the legacy back end has any table. Its program would load the
// kernel's modules for it.
func (c *collector) legacy(program string) bool {
	file := "ip_tables_names"
	if strings.HasPrefix(program, "ip6") {
		file = "ip6_tables_names"
	}
	text, err := c.read("/proc/thread-self/net/" + file)
	return err == nil && len(text) > 0
}
