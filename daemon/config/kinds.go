package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bad reports an unusable value: the default stays. Load fills in the rest.
func bad() []Problem { return []Problem{{}} }

// acceptsBool is Go's rule for booleans, which upstream uses.
const acceptsBool = "true or false (1, t, T, TRUE, true, True, 0, f, F, FALSE, false, False)"

func boolean(field func(*Config) *bool) binding {
	return binding{
		kind: Bool, accepts: acceptsBool,
		load: func(c *Config, v string) []Problem {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return bad()
			}
			*field(c) = b
			return nil
		},
		show: func(c *Config) string { return strconv.FormatBool(*field(c)) },
	}
}

// yesNo parses booleans as cni-metrics-helper does; other values are ignored.
func yesNo(field func(*Config) *bool) binding {
	b := boolean(field)
	b.accepts = "yes, true, no or false, any case"
	b.load = func(c *Config, v string) []Problem {
		switch strings.ToLower(v) {
		case "yes", "true":
			*field(c) = true
		case "no", "false":
			*field(c) = false
		default:
			return bad()
		}
		return nil
	}
	return b
}

func integer(field func(*Config) *int, least int) binding {
	return binding{
		kind: Int, accepts: fmt.Sprintf("an integer ≥ %d", least),
		load: func(c *Config, v string) []Problem {
			n, err := strconv.Atoi(v)
			if err != nil || n < least {
				return bad()
			}
			*field(c) = n
			return nil
		},
		show:   func(c *Config) string { return strconv.Itoa(*field(c)) },
		number: field,
	}
}

// maxENI treats "" as not set, stored as 0.
func maxENI(field func(*Config) *int) binding {
	b := integer(field, 1)
	b.show = func(c *Config) string {
		if *field(c) == 0 {
			return ""
		}
		return strconv.Itoa(*field(c))
	}
	return b
}

// mtu: a value that is not an integer prevents the start, as it always has in the
// entrypoint. The bounds depend on the address family, so Validate checks them.
func mtu(variable string, field func(*Config) *int) binding {
	b := integer(field, 0)
	b.accepts = "576–9001 (IPv4), 1280–9001 (IPv6)"
	b.load = func(c *Config, v string) []Problem {
		n, err := strconv.Atoi(v)
		if err != nil {
			return []Problem{{Fatal: true, Effect: effectNoStart, Text: textMTUInteger(variable, v)}}
		}
		*field(c) = n
		return nil
	}
	return b
}

const effectNoStart = "the daemon does not start"

// maxSeconds keeps seconds inside a time.Duration.
const maxSeconds = int64(1<<63-1) / int64(time.Second)

func seconds(field func(*Config) *time.Duration, least int64) binding {
	return binding{
		kind: Seconds, accepts: fmt.Sprintf("an integer ≥ %d (seconds)", least),
		load: func(c *Config, v string) []Problem {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < least || n > maxSeconds {
				return bad()
			}
			*field(c) = time.Duration(n) * time.Second
			return nil
		},
		show: func(c *Config) string { return strconv.FormatInt(int64(*field(c)/time.Second), 10) },
	}
}

// duration accepts Go's form ("2.5s") and plain seconds, as all other variables use.
func duration(field func(*Config) *time.Duration, least, most time.Duration) binding {
	return binding{
		kind: Duration, accepts: fmt.Sprintf("a duration such as 2.5s, or seconds; %s–%s", least, most),
		load: func(c *Config, v string) []Problem {
			d, err := time.ParseDuration(v)
			if err != nil {
				d, err = time.ParseDuration(v + "s")
			}
			if err != nil || d < least || d > most {
				return bad()
			}
			*field(c) = d
			return nil
		},
		show: func(c *Config) string { return field(c).String() },
	}
}

func text(field func(*Config) *string) binding {
	return binding{
		kind: Text, accepts: "any text",
		load: func(c *Config, v string) []Problem { *field(c) = v; return nil },
		show: func(c *Config) string { return *field(c) },
	}
}

// url passes the value on as written; whatever connects to it reports what is wrong with
// it.
func url(field func(*Config) *string) binding {
	b := text(field)
	b.kind, b.accepts = URL, "a URL"
	return b
}

func path(field func(*Config) *string) binding {
	b := text(field)
	b.kind, b.accepts = Path, "a path"
	return b
}

// logFile accepts a path or one of the streams in any case.
func logFile(field func(*Config) *string, streams ...string) binding {
	b := path(field)
	b.accepts = anyOf(append([]string{"a path"}, streams...))
	b.load = func(c *Config, v string) []Problem {
		for _, s := range streams {
			if strings.EqualFold(v, s) {
				v = s
			}
		}
		*field(c) = v
		return nil
	}
	return b
}

// pluginLogFile refuses stdout, where the plugin's result goes.
func pluginLogFile(variable string, field func(*Config) *string) binding {
	b := path(field)
	b.accepts = "a path on the node, stderr, or empty (no log); not stdout"
	b.load = func(c *Config, v string) []Problem {
		if strings.EqualFold(v, "stdout") {
			return []Problem{{Fatal: true, Effect: effectNoStart, Text: textPluginLogStdout(variable)}}
		}
		*field(c) = v
		return nil
	}
	return b
}

// anyOf joins words into a phrase: "a, b or c".
func anyOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func word[T ~string](field func(*Config) *T, words ...T) binding {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return binding{
		kind: Enum, accepts: anyOf(list),
		load: func(c *Config, v string) []Problem {
			if !slices.Contains(words, T(v)) {
				return bad()
			}
			*field(c) = T(v)
			return nil
		},
		show: func(c *Config) string { return string(*field(c)) },
	}
}

func logLevel(field func(*Config) *string) binding {
	b := word(field, "debug", "info", "warn", "error", "fatal")
	b.accepts += ", any case"
	load := b.load
	b.load = func(c *Config, v string) []Problem { return load(c, strings.ToLower(v)) }
	return b
}

// pluginLogLevel is written into the conflist as typed, so any case is kept.
func pluginLogLevel(field func(*Config) *string) binding {
	b := logLevel(field)
	b.load = func(c *Config, v string) []Problem {
		var lower Config
		if problems := logLevel(field).load(&lower, v); len(problems) > 0 {
			return problems
		}
		*field(c) = v
		return nil
	}
	return b
}

// policyMode is passed to plugin and agent as typed, so any case is kept.
func policyMode(field func(*Config) *string) binding {
	b := text(field)
	b.kind, b.accepts = Enum, "unset, or none, standard or strict in any case"
	b.load = func(c *Config, v string) []Problem {
		switch strings.ToLower(v) {
		case "none", "standard", "strict":
			*field(c) = v
			return nil
		}
		return []Problem{{Fatal: true, Effect: effectNoStart, Text: textNetworkPolicyMode}}
	}
	return b
}

// vethPrefix refuses an empty prefix, which would make rules match every interface ("-i
// +").
func vethPrefix(field func(*Config) *string) binding {
	b := text(field)
	b.accepts = "1–4 characters, not eth, lo or vlan"
	b.load = func(c *Config, v string) []Problem {
		p := Problem{Fatal: true, Effect: effectNoStart}
		switch {
		case v == "":
		case len(v) > 4:
			p.Text = textVethPrefixLong
		case v == "eth" || v == "lo" || v == "vlan":
			p.Text = textVethPrefixReserved
		case strings.ContainsFunc(v, notLinkName):
			// The kernel would refuse the link, or iptables would read "+" as a wildcard.
		default:
			*field(c) = v
			return nil
		}
		return []Problem{p}
	}
	return b
}

func notLinkName(r rune) bool {
	return r <= ' ' || r >= 0x7f || r == '/' || r == ':' || r == '+' || r == '%'
}

func mark(field func(*Config) *uint32) binding {
	return binding{
		kind: Int, accepts: "1–0xffffffff, with 0x, 0o or 0b if wanted",
		load: func(c *Config, v string) []Problem {
			n, err := strconv.ParseUint(v, 0, 32)
			if err != nil || n == 0 {
				return bad()
			}
			*field(c) = uint32(n)
			return nil
		},
		show: func(c *Config) string { return fmt.Sprintf("%#x", *field(c)) },
	}
}

// listenAddress refuses an empty value, which would mean a random port on all addresses. An
// address beyond the node's loopback is used, as always, and reported: the server there
// does not authenticate its clients.
func listenAddress(field func(*Config) *string) binding {
	b := text(field)
	b.kind, b.accepts = Address, "host:port, or unix: and an absolute path of up to 107 bytes"
	b.load = func(c *Config, v string) []Problem {
		if path, ok := strings.CutPrefix(v, "unix:"); ok {
			// 107 bytes are what a Linux socket address can hold besides its terminator.
			if !strings.HasPrefix(path, "/") || len(path) > 107 {
				return bad()
			}
			*field(c) = v
			return nil
		}
		host, port, err := net.SplitHostPort(v)
		if err != nil {
			return bad()
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return bad()
		}
		*field(c) = v
		if loopback(host) {
			return nil
		}
		return []Problem{{
			Fault:  "lets anyone who can reach the node read its pods, settings, events and logs",
			Effect: "use 127.0.0.1:" + port + " or unix:/path",
		}}
	}
	return b
}

// loopback reports whether a listen host is reachable from the node only. An empty host
// means all addresses; a name other than localhost may resolve to any.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// ipv4CIDRs skips and reports items that are not IPv4 CIDRs. It uses the others, masked to
// their network address.
func ipv4CIDRs(field func(*Config) *[]netip.Prefix) binding {
	return binding{
		kind: CIDRs, accepts: "IPv4 CIDRs separated by commas",
		load: func(c *Config, v string) []Problem {
			var problems []Problem
			var out []netip.Prefix
			for item := range strings.SplitSeq(v, ",") {
				item = strings.TrimSpace(item)
				p, err := netip.ParsePrefix(item)
				if err != nil || !p.Addr().Is4() {
					problems = append(problems, Problem{Value: item, Fault: "is not an IPv4 CIDR", Effect: "this entry is skipped"})
					continue
				}
				out = append(out, p.Masked())
			}
			*field(c) = out
			return problems
		},
		show: func(c *Config) string {
			list := *field(c)
			items := make([]string, len(list))
			for i, p := range list {
				items[i] = p.String()
			}
			return strings.Join(items, ",")
		},
	}
}

// reservedTag marks keys that ipamd itself writes.
const reservedTag = "k8s.amazonaws.com"

func tags(field func(*Config) *map[string]string) binding {
	return binding{
		kind: Tags, accepts: `a JSON object of strings, keys without "` + reservedTag + `"`,
		load: func(c *Config, v string) []Problem {
			var all map[string]string
			if err := json.Unmarshal([]byte(v), &all); err != nil {
				return []Problem{{Effect: "no additional tags are written"}}
			}
			var problems []Problem
			out := map[string]string{}
			for _, k := range slices.Sorted(maps.Keys(all)) {
				if strings.Contains(k, reservedTag) {
					problems = append(problems, Problem{Value: k, Fault: `has a key reserved for the CNI, containing "` + reservedTag + `"`, Effect: "this tag is not written"})
					continue
				}
				out[k] = all[k]
			}
			*field(c) = out
			return problems
		},
		show: func(c *Config) string {
			if *field(c) == nil {
				return ""
			}
			b, err := json.Marshal(*field(c))
			if err != nil {
				return ""
			}
			return string(b)
		},
	}
}

// others is the binding of variables that only other programs read.
func others(kind Kind, accepts string) binding { return binding{kind: kind, accepts: accepts} }
