package egress

import (
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
)

// DefaultNetwork is the name of the network in the shipped conflist; chain names and
// comments contain it.
const DefaultNetwork = "aws-cni"

// chainLength is the length of a whole chain name; iptables allows 28 characters.
const chainLength = 28

// PostRouting is the chain of the nat table that jumps to ours.
const PostRouting = "POSTROUTING"

// Chain returns the name of a sandbox's chain; each pod with egress has one. v6 is the
// family of the egress.
func Chain(v6 bool, network, containerID string) string {
	prefix := netnames.EgressChainPrefixV4
	if v6 {
		prefix = netnames.EgressChainPrefixV6
	}
	sum := sha512.Sum512([]byte(network + containerID))
	return (prefix + hex.EncodeToString(sum[:]))[:chainLength]
}

// Comment returns the comment on each of a sandbox's rules.
func Comment(network, containerID string) string {
	return "name: " + strconv.Quote(network) + " id: " + strconv.Quote(containerID)
}

// Random is how SNAT chooses source ports: an option of iptables, or none.
type Random string

// Values of AWS_VPC_K8S_CNI_RANDOMIZESNAT and the options of iptables for them.
const (
	RandomNone  Random = ""
	RandomHash  Random = "--random"
	RandomFully Random = "--random-fully"
)

// ParseRandom parses the setting. fully is whether iptables supports --random-fully
// (1.6.2).
func ParseRandom(word string, fully bool) Random {
	switch {
	case word == "none":
		return RandomNone
	case word == "hashrandom", !fully:
		return RandomHash
	}
	return RandomFully
}

// SNAT is the translation of one pod's egress: its rules of the nat table.
type SNAT struct {
	Chain   string
	Comment string
	PodIP   netip.Addr // of the egress link
	NodeIP  netip.Addr
	Random  Random
}

// Wanted returns the wanted translation of a sandbox in a network of that name.
func Wanted(network, containerID string, podIP, nodeIP netip.Addr, random Random) (SNAT, error) {
	switch {
	case !podIP.IsValid() || !nodeIP.IsValid() || podIP.Is4() != nodeIP.Is4() || podIP.Is4In6() || nodeIP.Is4In6():
		return SNAT{}, errors.New("egress addresses " + podIP.String() + " and " + nodeIP.String() + " are not of one family")
	case podIP.Zone() != "" || nodeIP.Zone() != "":
		return SNAT{}, errors.New("egress address has a zone")
	}
	return SNAT{
		Chain: Chain(podIP.Is6(), network, containerID), Comment: Comment(network, containerID),
		PodIP: podIP, NodeIP: nodeIP, Random: random,
	}, nil
}

// rules returns the chain with its rules.
func (s SNAT) rules() iptables.Chain {
	multicast := "224.0.0.0/4"
	if s.PodIP.Is6() {
		multicast = "ff00::/8"
	}
	snat := s.comment() + " -j SNAT --to-source " + s.NodeIP.String()
	if s.Random != RandomNone {
		snat += " " + string(s.Random)
	}
	return iptables.Chain{Name: s.Chain, Policy: "-", Rules: []string{"-d " + multicast + " " + s.comment() + " -j ACCEPT", snat}}
}

// Rules returns the chain's rules as iptables-save prints them.
func (s SNAT) Rules() []string { return s.rules().Lines() }

// Jump returns the rule in POSTROUTING that jumps to the chain.
func (s SNAT) Jump() string {
	return "-A " + PostRouting + " -s " + netstate.Only(s.PodIP).String() + " " + s.comment() + " -j " + s.Chain
}

func (s SNAT) comment() string { return `-m comment --comment ` + quoteArg(s.Comment) }

// quoteArg quotes an argument as iptables-save does.
func quoteArg(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// String prints the chain and its rules as iptables-save does.
func (s SNAT) String() string {
	return ":" + s.Chain + " - [0:0]\n" + s.Jump() + "\n" + strings.Join(s.Rules(), "\n") + "\n"
}
