package catalogue

import (
	"net/netip"
	"regexp"
	"sync"
)

// naming fills placeholders of commands from a line: each group of the regular expression fills one word.
type naming struct {
	words []string
	form  string
}

// namings are tried in order; the first match fills a placeholder.
var namings = []naming{
	{[]string{"VERB", "RESOURCE", "GROUP"}, `cannot (\w+) resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)`},
	{[]string{"NAMESPACE", "POD"}, `\bpod(?:Ref)?=\\*"?([a-z0-9.-]+)/([a-z0-9.-]+)`},
	{[]string{"POD", "NAMESPACE"}, `PodSandboxMetadata\{Name:([a-z0-9.-]+),[^}]*\bNamespace:([a-z0-9.-]+)`},
	{[]string{"POD", "NAMESPACE"}, `\bpod[ =]([a-z0-9.-]+)_([a-z0-9-]+)\(`},
	{[]string{"POD", "NAMESPACE"}, `\bpod ([a-z0-9.-]+) namespace ([a-z0-9-]+)\b`},
	{[]string{"NAMESPACE", "POD"}, `K8S_POD_NAMESPACE=([a-z0-9-]+);K8S_POD_NAME=([a-z0-9.-]+)`},
	{[]string{"NAMESPACE", "POD"}, `\bpod \\*"?([a-z0-9-]+)/([a-z0-9.-]+)`},
	{[]string{"NODE"}, `\bnode(?:Name)?\\*"?[=: ]\\*"([a-z0-9][a-z0-9.-]+)`},
	{[]string{"NODE"}, `\b((?:ip-\d+-\d+-\d+-\d+|i-[0-9a-f]+)\.[a-z0-9.-]*\binternal)\b`},
	{[]string{"NAME"}, `(?i)\bENIConfig[a-z0-9.]* \\*"?([a-z0-9][a-z0-9.-]*)\\*"? not found`},
	{[]string{"WEBHOOK"}, `failed calling webhook \\*"([^"\\]+)`},
	{[]string{"MODULE"}, `Module (\w+) not found`},
	{[]string{"ACTION"}, `\b(ec2:[A-Z][A-Za-z0-9]+)`},
	{[]string{"ROLE"}, `(?::role/(?:[\w+=,.@-]+/)*|assumed-role/)([\w+=,.@-]+)`},
	{[]string{"CLUSTER_IP"}, `\bdial tcp (\d+\.\d+\.\d+\.\d+):443\b`},
	{[]string{"ENDPOINT"}, `https://([0-9A-F]{8,}\.[a-z0-9.-]+\.eks\.amazonaws\.com)`},
	{[]string{"REGION"}, `\b[a-z0-9]+\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com`},
	{[]string{"ENI"}, `\b(eni-[0-9a-f]{3,17})\b`},
	{[]string{"SUBNET"}, `\b(subnet-[0-9a-f]{3,17})\b`},
	{[]string{"INSTANCE"}, `\b(i-[0-9a-f]{3,17})\b`},
	{[]string{"VPC"}, `\b(vpc-[0-9a-f]{3,17})\b`},
	{[]string{"VETH"}, `\b(eni[0-9a-f]{11})\b`},
	{[]string{"LINK"}, `\b(vlan\.eth\.\d+)\b`},
	{[]string{"LINK"}, `\b((?:ens|eth|enp\d+s)\d+)\b`},
	{[]string{"ADDRESS"}, `\b(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?:/\d+)?)\b`},
}

var namingForms = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(namings))
	for i, n := range namings {
		out[i] = regexp.MustCompile(n.form)
	}
	return out
})

// NamesIn returns the values that a line of a log or an event has for placeholders of commands, by
// placeholder. One with two different values is left out.
func NamesIn(line string) map[string]string {
	line = line[:min(len(line), mostLine)]
	names, found := map[string]string{}, map[string]bool{}
	for i, form := range namingForms() {
		of := namings[i].words
		here, unclear := map[string]string{}, map[string]bool{}
		for _, m := range form.FindAllStringSubmatch(line, -1) {
			for j, word := range of {
				if old, there := here[word]; there && old != m[j+1] {
					unclear[word] = true
				}
				here[word] = m[j+1]
			}
		}
		for _, word := range of {
			name, there := here[word]
			if !there || found[word] {
				continue
			}
			found[word] = true
			if !unclear[word] && !(word == "ADDRESS" && ofNobody(name)) {
				names[word] = name
			}
		}
	}
	return names
}

// ofNobody reports whether a text is no address, or one of no pod or interface of a VPC.
func ofNobody(text string) bool {
	a, err := netip.ParseAddr(text)
	return err != nil || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified()
}
