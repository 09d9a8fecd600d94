package vpc

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"cnictl/testenv/netns"
)

// legacyFirewall makes the same checks with the legacy variants of iptables: the reverse
// route look-up is the match rpfilter, and each link has a rule of its own that counts.
type legacyFirewall struct {
	ns   *netns.NS
	ipv6 bool
}

// Chains of the legacy firewall.
const (
	checkChain  = "FABRIC-CHECK"  // raw: a link that is not to be checked returns
	sourceChain = "FABRIC-SOURCE" // raw: what failed the check, counted and dropped by link
	outChain    = "FABRIC-OUT"    // filter: to the outside host
	inChain     = "FABRIC-IN"     // filter: from the outside host
)

func (fw legacyFirewall) build() error {
	raw := "*raw\n:" + checkChain + " -\n:" + sourceChain + " -\n%s" +
		"-A PREROUTING -i f+ -j " + checkChain + "\n" +
		"-A " + checkChain + " -m rpfilter --invert -j " + sourceChain + "\nCOMMIT\n"
	filter := "*filter\n:" + outChain + " -\n:" + inChain + " -\n" +
		"-A FORWARD -o " + internetLink + " -j " + outChain + "\n-A FORWARD -i " + internetLink + " -j " + inChain + "\n" +
		"-A " + outChain + " -j DROP\n-A " + inChain + " -j DROP\nCOMMIT\n"
	if _, err := fw.run(fmt.Sprintf(raw, "")+filter, "iptables-restore"); err != nil || !fw.ipv6 {
		return err
	}
	exempt := "-A " + checkChain + " -s ::/128 -j RETURN\n-A " + checkChain + " -s fe80::/10 -j RETURN\n"
	_, err := fw.run(fmt.Sprintf(raw, exempt)+filter, "ip6tables-restore")
	return err
}

func (fw legacyFirewall) watch(link string) error {
	return fw.both("-t", "raw", "-A", sourceChain, "-i", link, "-j", "DROP")
}

func (fw legacyFirewall) unwatch(link string) error {
	return fw.both("-t", "raw", "-D", sourceChain, "-i", link, "-j", "DROP")
}

func (fw legacyFirewall) setUnchecked(link string, unchecked bool) error {
	return fw.both("-t", "raw", change(unchecked), checkChain, "-i", link, "-j", "RETURN")
}

func (fw legacyFirewall) setPublic(a netip.Addr, public bool) error {
	for chain, side := range map[string]string{outChain: "-s", inChain: "-d"} {
		if _, err := fw.run("", "iptables", change(public), chain, side, a.String(), "-j", "RETURN"); err != nil {
			return err
		}
	}
	return nil
}

// change inserts a rule first, or deletes it.
func change(present bool) string {
	if present {
		return "-I"
	}
	return "-D"
}

func (fw legacyFirewall) sourceDrops() (map[string]uint64, error) {
	drops := map[string]uint64{}
	for _, program := range fw.programs() {
		counts, err := fw.counts(program+"-save", "raw", sourceChain)
		if err != nil {
			return nil, err
		}
		for rule, n := range counts {
			link, _, _ := strings.Cut(strings.TrimPrefix(rule, "-i "), " ")
			if n > 0 {
				drops[link] += n
			}
		}
	}
	return drops, nil
}

func (fw legacyFirewall) notPublic() (uint64, error) {
	counts, err := fw.counts("iptables-save", "filter", outChain)
	return counts["-j DROP"], err
}

// counts reads the packets per rule of a chain: "[packets:bytes] -A CHAIN rule".
func (fw legacyFirewall) counts(program, table, chain string) (map[string]uint64, error) {
	out, err := fw.run("", program, "-c", "-t", table)
	if err != nil {
		return nil, err
	}
	counts := map[string]uint64{}
	for line := range strings.Lines(string(out)) {
		count, rule, ok := strings.Cut(strings.TrimSpace(line), "] -A "+chain+" ")
		if !ok {
			continue
		}
		var packets, octets uint64
		if _, err := fmt.Sscanf(count, "[%d:%d", &packets, &octets); err != nil {
			return nil, fmt.Errorf("read %s: %q: %w", program, line, err)
		}
		counts[rule] = packets
	}
	return counts, nil
}

func (fw legacyFirewall) programs() []string {
	if fw.ipv6 {
		return []string{"iptables", "ip6tables"}
	}
	return []string{"iptables"}
}

func (fw legacyFirewall) both(args ...string) error {
	var errs []error
	for _, program := range fw.programs() {
		_, err := fw.run("", program, append([]string{"-w"}, args...)...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (fw legacyFirewall) run(stdin, program string, args ...string) ([]byte, error) {
	var out []byte
	err := fw.ns.Do(func() error { // the child gets the namespace of the thread
		cmd := exec.Command(program, args...)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		var err error
		if out, err = cmd.Output(); err != nil {
			return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
		}
		return nil
	})
	return out, err
}
