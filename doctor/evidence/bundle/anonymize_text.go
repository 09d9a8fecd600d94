package bundle

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
)

// mention is a form in which texts of logs and events have names, and what is noted of each match.
type mention struct {
	form func() *regexp.Regexp
	note func(a *Anonymizer, m []string)
}

// inTexts are tried in order: the first kind of a name counts.
var inTexts = []mention{
	{lazy.Regexp(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/\d{1,2}\b|[0-9a-fA-F:]*::[0-9a-fA-F:]*/\d{1,3}\b`), func(a *Anonymizer, m []string) {
		if p, err := netip.ParsePrefix(m[0]); err == nil {
			a.ranges(p)
		}
	}},
	{lazy.Regexp(`(?i)(?:\b|_|k8s)pod_?name(["':=\\\s(]+)([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)`),
		func(a *Anonymizer, m []string) { a.said("pod", m[1], m[2]) }},
	{lazy.Regexp(`(?i)(?:\b|_|pod)namespace(["':=\\\s(]+)([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)`),
		func(a *Anonymizer, m []string) { a.said("namespace", m[1], m[2]) }},
	{lazy.Regexp(`(?i)\bpods?["':=\\\s([]+([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)`),
		func(a *Anonymizer, m []string) { a.pair("pod", m[1], strings.TrimRight(m[2], ".-")) }},
	{lazy.Regexp(`\bpod(?:=|":")([a-z0-9][a-z0-9.-]*)(?: |",")"?namespace(?:=|":")([a-z0-9][a-z0-9-]*)`), // as our daemon logs
		func(a *Anonymizer, m []string) { a.pair("pod", m[2], m[1]) }},
	{lazy.Regexp(`\b([a-z0-9][a-z0-9.-]*)_([a-z0-9][a-z0-9-]*)\([0-9a-f]{8}-`), // as kubelet does
		func(a *Anonymizer, m []string) { a.pair("pod", m[2], m[1]) }},
	{lazy.Regexp(`/pods/([a-z0-9][a-z0-9-]*)_([a-z0-9][a-z0-9.-]*)_[0-9a-f]{8}`),
		func(a *Anonymizer, m []string) { a.pair("pod", m[1], m[2]) }},
	{lazy.Regexp(`--comment \\*"([a-z0-9][a-z0-9-]*)/([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)`), // of kube-proxy's rules
		func(a *Anonymizer, m []string) { a.pair("service", m[1], m[2]) }},
	{lazy.Regexp(`system:serviceaccounts?:([a-z0-9][a-z0-9-]*)(?::([a-z0-9][a-z0-9.-]*))?`), func(a *Anonymizer, m []string) {
		a.name("namespace", m[1])
		a.name("service-account", m[2])
	}},
	{lazy.Regexp(`system:node:([a-z0-9][a-z0-9.-]*)`), func(a *Anonymizer, m []string) { a.name("node", m[1]) }},
	{arnForm, func(a *Anonymizer, m []string) {
		kind, names := partsOfARN(m[1], m[2])
		for _, name := range names {
			a.name(kind, name)
		}
	}},
	{lazy.Regexp(`(?:^|\s)-[Ajg] ([0-9A-Za-z_]\S*)`), func(a *Anonymizer, m []string) { a.chain(strings.Trim(m[1], "\"'`,;:.()[]\\")) }},
	{lazy.Regexp(`(?:^|\s)-A .*?\s-[io] ([0-9A-Za-z_]\S*?)\+?(?:\s.*?-[io] ([0-9A-Za-z_]\S*?)\+?)?(?:\s|$)`), func(a *Anonymizer, m []string) {
		for _, link := range m[1:] {
			if link != "" && !knownDevice().MatchString(link) {
				a.name("device", link)
			}
		}
	}},
	{lazy.Regexp(`://(?:[^/@\s]*@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)`), func(a *Anonymizer, m []string) { a.host(m[1]) }},
	{lazy.Regexp(`\b[a-z0-9-]+\.[a-z0-9-]+\.svc\b`), func(a *Anonymizer, m []string) { a.host(m[0]) }},
}

var arnForm = lazy.Regexp(`\barn:aws[a-z-]*:([a-z0-9-]*):[a-z0-9-]*:(?:<account-id>|[0-9]*):([\w+=,.@/:-]+)`)

// scan notes the names in a text.
func (a *Anonymizer) scan(text string) {
	if !strings.ContainsAny(text, " \t/:=(\"") && !strings.Contains(text, ".svc") {
		return // a single word
	}
	for _, in := range inTexts {
		for _, m := range in.form().FindAllStringSubmatch(text, -1) {
			in.note(a, m)
		}
	}
}

// said notes a name that only a text mentions. A common word after a blank is most likely no name.
func (a *Anonymizer) said(kind, before, name string) {
	if strings.ContainsAny(before, `"':=`) || !commonWords()[strings.ToLower(name)] {
		a.name(kind, name)
	}
}

// partsOfARN returns the names in the resource of an ARN.
func partsOfARN(service, resource string) (kind string, names []string) {
	resource = strings.TrimRight(resource, ".,:-/")
	parts := strings.FieldsFunc(resource, func(r rune) bool { return r == '/' || r == ':' })
	kind = "resource"
	if len(parts) > 1 {
		switch parts[0] {
		case "role", "assumed-role", "user", "instance-profile", "policy":
			kind = "role"
		case "cluster", "nodegroup", "addon":
			kind = "cluster"
		}
		if parts[0] != service && service != "s3" { // the type of the resource
			parts = parts[1:]
		}
	}
	for _, p := range parts {
		if !idForm().MatchString(p) && !publicDomain(p) && p != "aws-service-role" && p != "service-role" {
			names = append(names, p)
		}
	}
	return kind, names
}

// id replaces an id and keeps its form.
func (a *Anonymizer) id(id string) string {
	kind := idKind().FindString(id)
	digits := len(id) - len(kind)
	if strings.Trim(id[len(kind):], "0123456789abcdef") != "" || digits < 8 {
		digits = 8
	}
	if kind == "" {
		kind = "id-"
	}
	return kind + a.sum(id)[:min(digits, 64)]
}

// tokens matches what is replaced in a text, and whatever could be confused with it.
var tokens = lazy.Regexp(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}` + // UUID
	`|(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}` + // MAC
	`|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){1,6}:[0-9]{1,3}(?:\.[0-9]{1,3}){3}` + // IPv4 in IPv6
	`|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}` + // IPv6
	`|[0-9A-Za-z][0-9A-Za-z._-]*`) // names, ids, IPv4

const idKinds = `eni-attach|tgw-attach|trunk-assoc|eni|subnet|vpc|sg|sgr|i|vol|rtb|rtbassoc|acl|igw|eigw|nat|` +
	`eipalloc|eipassoc|pcx|tgw|vpce|pl|dopt|lt|cr|r|ami|snap|fs|fleet|scr`

// Forms within a name.
var (
	idKind   = lazy.Regexp(`^(?:` + idKinds + `)-`)
	idForm   = lazy.Regexp(`^(?:` + idKinds + `)-(?:[0-9a-f]{17}|[0-9a-f]{8})`)
	idWithin = lazy.Regexp(`\b(?:` + idKinds + `)-[0-9a-f]{8}`)
	hostForm = lazy.Regexp(`^ip-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,3}`)
	ipv4Form = lazy.Regexp(`^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}`)
	vethForm = lazy.Regexp(`^(?:[a-z]{1,4}|dummy)[0-9a-f]{11}`)
	hexForm  = lazy.Regexp(`^(?:[0-9A-F]{32,}|[0-9a-f]{32,})`)
)

// clear returns the replacement of a name that can only be that in a text.
func (a *Anonymizer) clear(name string) (to string, ok bool) {
	if to, ok = a.names[name]; ok && a.ambiguous(name) {
		return "", false
	}
	return to, ok
}

// text replaces the names in a text.
func (a *Anonymizer) text(text string) string {
	if to, ok := a.clear(text); ok {
		return to
	}
	mentions := a.mentions(text)
	out := a.spliced(text, mentions)
	if len(mentions) > 0 && signatures().Match([]byte(text)) && !signatures().Match([]byte(out)) {
		out = a.spliced(text, slices.DeleteFunc(mentions, func(s span) bool { return commonWords()[strings.ToLower(text[s.from:s.to])] }))
	}
	return out
}

var signatures = sync.OnceValue(catalogue.NewMatcher)

func (a *Anonymizer) spliced(text string, mentions []span) string {
	var out strings.Builder
	at := 0
	for _, s := range mentions {
		a.tokens(&out, text[at:s.from])
		out.WriteString(a.names[text[s.from:s.to]])
		at = s.to
	}
	a.tokens(&out, text[at:])
	return out.String()
}

// tokens writes a text without the names that can only be that.
func (a *Anonymizer) tokens(out *strings.Builder, text string) {
	for text != "" {
		at := tokens().FindStringIndex(text)
		if at == nil {
			break
		}
		out.WriteString(text[:at[0]])
		token, rest := text[at[0]:at[1]], text[at[1]:]
		goesOn := rest != "" && (wordByte(rest[0]) ||
			strings.HasPrefix(token, "::") && len(rest) > 1 && strings.IndexByte("-._", rest[0]) >= 0 && wordByte(rest[1]))
		if colon := strings.IndexByte(token, ':'); colon >= 0 && (goesOn || !isAddress(token)) {
			// No address, but parts such as those of an ARN or of a time, the last of which may go on.
			out.WriteString(a.token(token[:colon]))
			out.WriteByte(':')
			text = text[at[0]+colon+1:]
			continue
		}
		if m := lengthForm().FindString(rest); m != "" {
			if p, err := netip.ParsePrefix(token + m); err == nil {
				out.WriteString(a.prefix(p).String())
				text = rest[len(m):]
				continue
			}
		}
		out.WriteString(a.token(token))
		text = rest
	}
	out.WriteString(text)
}

// lengthForm matches the length of a range, after its address.
var lengthForm = lazy.Regexp(`^/[0-9]{1,3}\b`)

// isAddress reports whether a text is an IP or a MAC address.
func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || len(text) == 17 && strings.Count(text, ":") == 5
}

// What comes before a name in a text, and the name: a keyword and a sign, a keyword and a blank,
// quotes, a host name within the cluster.
const nameForm = `([0-9A-Za-z](?:[0-9A-Za-z._-]*[0-9A-Za-z])?)`

var (
	keywords = `(?i)(?:\b|_|k8s)(?:(?:pod[ _-]?)?namespaces?|ns|pods?|nodes?|hosts?|` +
		`hostname|clusters?|service[ _-]?accounts?|node ?groups?|roles?|users?|` +
		`containers?|deployments?|statefulsets?|daemonsets?|replicasets?|` +
		`(?:cron)?jobs?|eniconfigs?|secrets?|configmaps?|services?|polic(?:y|ies)|labels?|tags?|name)(?:[ _-]?names?)?`
	mentioned = []func() *regexp.Regexp{
		lazy.Regexp(keywords + `["'\\]*(?:\s*[=:]\s*["'\\]*|\s*\(\s*|\s+\\*["']|/)` + nameForm),
		lazy.Regexp(`(?i)\bnamespaces?\s+` + nameForm),
		lazy.Regexp(`(?:^|[^0-9A-Za-z.-])(?:([0-9a-z-]+)\.)?([0-9a-z-]+)\.(?:svc|pod)\b`),
		lazy.Regexp(`system:serviceaccounts?:([a-z0-9][a-z0-9-]*)(?::([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?))?`),
		lazy.Regexp(`system:node:` + nameForm),
		lazy.Regexp(`\bassigned \S+ to ` + nameForm),
		lazy.Regexp(`\bNode ` + nameForm + ` (?:status is now|event)`),
		lazy.Regexp(`(?i)\bcontainer ` + nameForm + `(?:$| in pod)`),
		lazy.Regexp(`(?:^|\s)-[Ajg] ` + nameForm), // of rules of iptables
		lazy.Regexp(`["']([0-9a-z-]+)/([0-9a-z.-]+)(?::[0-9a-z-]+)?\\*["']`),
		lazy.Regexp("(?:^|[^:\\s\"'\\\\])\\s*\\\\*[\"'`]" + nameForm + "\\\\*[\"'`](?:$|[^:])"),
	}
	// As events and objects say it.
	labelled = lazy.Regexp(`([0-9A-Za-z](?:[0-9A-Za-z./_-]*[0-9A-Za-z])?)["'\\]*\s*(?:==?|:|\b[Ii]n\b)\s*\(?["'\\]*` + nameForm)
	numbered = lazy.Regexp(keywords + `\s+` + nameForm)
)

// span is a name within a text.
type span struct{ from, to int }

// mentions finds names that may stand for something else, where a text shows that they do not.
func (a *Anonymizer) mentions(text string) []span {
	if !a.mayMention(text) {
		return nil
	}
	var out []span
	found := func(from, to int, common bool) {
		if name := text[from:to]; a.names[name] != "" && a.ambiguous(name) && (common || !commonWords()[strings.ToLower(name)]) {
			out = append(out, span{from, to})
		}
	}
	each := func(form *regexp.Regexp, common bool) {
		for _, m := range form.FindAllStringSubmatchIndex(text, -1) {
			for i := 2; i < len(m); i += 2 {
				if m[i] < 0 || form == mentioned[0]() && m[i+1]+1 < len(text) && text[m[i+1]] == ':' && letterByte(text[m[i+1]+1]) {
					continue // User "system:…"
				}
				found(m[i], m[i+1], common)
			}
		}
	}
	for _, m := range mentioned {
		each(m(), true)
	}
	each(numbered(), false)
	for _, m := range labelled().FindAllStringSubmatchIndex(text, -1) {
		if key := text[m[2]:m[3]]; a.kinds[key] == "key" || harmless["key"][key] {
			found(m[2], m[3], true)
			found(m[4], m[5], true)
		}
	}
	for _, m := range arnForm().FindAllStringSubmatchIndex(text, -1) {
		for from := m[4]; from < m[5]; {
			n := strings.IndexAny(text[from:m[5]], "/:")
			if n < 0 {
				n = m[5] - from
			}
			if from > m[4] || n == m[5]-from || text[m[2]:m[3]] == "s3" { // not the type of the resource
				found(from, from+n, true)
			}
			from += n + 1
		}
	}
	for i := range len(text) { // NAMESPACE/NAME, NAME_NAMESPACE, NAMESPACE_NAME
		if text[i] != '/' && text[i] != '_' {
			continue
		}
		left, right := i, i+1
		for left > 0 && nameByte(text[left-1]) {
			left--
		}
		for right < len(text) && nameByte(text[right]) {
			right++
		}
		for right > i+1 && !wordByte(text[right-1]) {
			right--
		}
		x, y := text[left:i], text[i+1:right]
		_, there := a.pairs[[2]string{x, y}]
		if _, turned := a.pairs[[2]string{y, x}]; there || turned && text[i] == '_' {
			found(left, i, true)
			found(i+1, right, true)
		}
	}
	slices.SortFunc(out, func(x, y span) int { return x.from - y.from })
	kept := out[:0]
	for _, s := range out {
		if len(kept) == 0 || s.from >= kept[len(kept)-1].to {
			kept = append(kept, s)
		}
	}
	return kept
}

// mayMention reports whether a text has the first word of such a name. Most lines of logs have none.
func (a *Anonymizer) mayMention(text string) bool {
	for from := 0; from < len(text); from++ {
		to := from
		for to < len(text) && wordByte(text[to]) {
			to++
		}
		if to > from && a.weak[text[from:to]] {
			return true
		}
		from = to
	}
	return false
}

func nameByte(b byte) bool { return wordByte(b) || b == '.' || b == '-' }

func wordByte(b byte) bool { return '0' <= b && b <= '9' || letterByte(b) }

func letterByte(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }

func (a *Anonymizer) token(token string) string {
	if to, ok := a.clear(token); ok {
		return to
	}
	if strings.Contains(token, ":") {
		if len(token) == 17 && strings.Count(token, ":") == 5 {
			return a.mac(token)
		}
		if address, err := netip.ParseAddr(token); err == nil {
			return a.address(address).String()
		}
		return token
	}
	if len(token) == 36 && strings.Count(token, "-") == 4 && token[8] == '-' && token[23] == '-' {
		if sum := a.sum(token); strings.Trim(token, "-0123456789abcdefABCDEF") == "" {
			return sum[:8] + "-" + sum[8:12] + "-" + sum[12:16] + "-" + sum[16:20] + "-" + sum[20:32]
		}
	}
	var out strings.Builder
	for i := 0; i < len(token); {
		from, to := token[i:], ""
		n := 0
		if i == 0 || !wordByte(token[i-1]) {
			n, to = a.part(from)
		}
		if n == 0 {
			n, to = 1, from[:1]
		}
		out.WriteString(to)
		i += n
	}
	return out.String()
}

// part replaces the beginning of a piece of a name; n is 0 if there is nothing to replace.
func (a *Anonymizer) part(text string) (n int, to string) {
	ends := func(n int) bool { return n > 0 && (n == len(text) || !wordByte(text[n])) }
	for n := min(len(text), max(a.longest, longestPublic)); n > 1; n-- {
		if !ends(n) {
			continue
		}
		if to, ok := a.clear(text[:n]); ok {
			return n, to
		}
		if public[text[:n]] {
			return n, text[:n]
		}
	}
	if m := idForm().FindString(text); ends(len(m)) {
		return len(m), a.id(m)
	}
	if m := hostForm().FindString(text); ends(len(m)) {
		if address, err := netip.ParseAddr(strings.ReplaceAll(m[3:], "-", ".")); err == nil {
			return len(m), "ip-" + strings.ReplaceAll(a.address(address).String(), ".", "-")
		}
	}
	if m := ipv4Form().FindString(text); ends(len(m)) {
		if address, err := netip.ParseAddr(m); err == nil {
			return len(m), a.address(address).String()
		}
	}
	if m := vethForm().FindString(text); ends(len(m)) && strings.ContainsAny(m, "0123456789") {
		prefix, hash := m[:len(m)-11], m[len(m)-11:]
		if to, ok := a.links[hash]; ok {
			return len(m), prefix + to
		}
		return len(m), prefix + a.sum(hash)[:11]
	}
	if m := hexForm().FindString(text); ends(len(m)) {
		return len(m), a.sum(m)[:32]
	}
	return 0, ""
}
