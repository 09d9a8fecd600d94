package catalogue

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// normal removes what loggers, shells and people change: letter case, quotes, escapes, white
// space.
func normal(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r == '"' || r == '\'' || r == '`' || r == '\\' || r >= utf8.RuneSelf }) >= 0 {
		text = unescape.Replace(text)
	}
	text = strings.ToLower(text)
	if strings.Contains(text, "  ") || strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r >= utf8.RuneSelf }) >= 0 {
		return strings.Join(strings.Fields(text), " ")
	}
	return strings.TrimSpace(text)
}

var unescape = strings.NewReplacer(
	`\n`, " ", `\t`, " ", `\r`, " ", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u0027`, "", `\u0022`, "",
	`\`, "", `"`, "", `'`, "", "`", "", "“", "", "”", "", "‘", "", "’", "",
)

// words returns the meaningful words of a normal text, each in one form: those of one meaning are
// the same word, and endings are removed.
func words(plain string) []string {
	return appendWords(make([]string, 0, strings.Count(plain, " ")+2), plain, form)
}

// appendWords appends what form makes of the words, but nothing twice in a row.
func appendWords[T comparable](out []T, plain string, form func(string) T) []T {
	var none T
	for first := len(out); plain != ""; {
		end := strings.IndexFunc(plain, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(plain)
		}
		if w := form(plain[:end]); w != none && (len(out) == first || out[len(out)-1] != w) {
			out = append(out, w)
		}
		plain = plain[min(end+1, len(plain)):]
		for plain != "" && !utf8.RuneStart(plain[0]) { // the rest of the separator
			plain = plain[1:]
		}
	}
	return out
}

// forms are words in which people and releases differ, and those without meaning.
var forms = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(`:a an the to of is are up be been has have had for in on with and or as at from by
		:was were it its out this that there
		:which not uses use used will would should while whose so all can we you
		fail:failed fails failing failure fail unable cannot could couldnt cant unsuccessful impossible
		timeout:timeout timed timeouts
		ip:address addresses ips ip ipaddr
		imds:metadata imds
		ipam:ipamd ipam
		error:error errors err
		find:find found finding
		get:get got getting retrieve retrieved retrieving retrieval fetch fetched fetching read reading obtain
		make:create created creating creation make made
		delete:delete deleted deleting deletion remove removed removing
		set:set setup setting
		cmd:cmd command
		config:config configuration
		exist:exist exists existing
		start:start started starting startup`, "\n") {
		to, from, _ := strings.Cut(strings.TrimSpace(line), ":")
		for _, w := range strings.Fields(from) {
			m[w] = to
		}
	}
	return m
})

// form returns the form of a word in which words are compared, "" for one without meaning.
func form(w string) string {
	if to, ok := forms()[w]; ok {
		return to
	}
	if len(w) < 2 {
		return ""
	}
	if strings.IndexFunc(w, unicode.IsDigit) >= 0 {
		return w
	}
	for _, spelled := range []string{"ised", "ising", "ise"} {
		if rest, ok := strings.CutSuffix(w, spelled); ok && len(rest) >= 4 {
			w = rest + "iz" + spelled[2:]
		}
	}
	for _, ending := range []string{"ments", "ment", "ings", "ing", "ied", "ies", "ed", "es", "s", "e"} {
		if rest, ok := strings.CutSuffix(w, ending); ok && len(rest) >= 4 && !strings.HasSuffix(w, "ss") {
			return rest
		}
	}
	return w
}

// failing are words of failure. If a text that is searched for has one, the line must have one
// too: messages about success share the other words.
var failing = []string{
	"fail", "error", "no", "invalid", "unknown", "dial", "miss", "missing", "timeout",
	"already", "skipp", "refus", "denied", "reject", "exceed", "without",
}

func fails(w string) bool { return slices.Contains(failing, w) }

// ordinary reports whether text is a single word without inner capitals: Throttling, Unsupported.
func ordinary(text string) bool {
	return strings.IndexFunc(text[1:], func(r rune) bool { return !unicode.IsLower(r) }) < 0
}

// hasWord reports whether text contains the complete word.
func hasWord(text, word string) bool {
	for rest := text; ; {
		at := strings.Index(rest, word)
		if at < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(rest[:at])
		after, _ := utf8.DecodeRuneInString(rest[at+len(word):])
		if !joins(before) && !joins(after) {
			return true
		}
		rest = rest[at+len(word):]
	}
}

// asReason reports whether a word is all of a text, or stands where the reason of an event does.
func asReason(text, word string) bool {
	before := []string{"Warning", "Normal", `"reason":`, "reason=", ":"}
	return strings.TrimSpace(text) == word || slices.ContainsFunc(before, func(before string) bool {
		for rest := text; ; {
			at := strings.Index(rest, before)
			if at < 0 {
				return false
			}
			rest = rest[at+len(before):]
			if after, ok := strings.CutPrefix(strings.TrimLeft(rest, " \t\""), word); ok && !strings.HasPrefix(after, ":") {
				return true
			}
		}
	})
}

func joins(r rune) bool {
	return r == '-' || r == '/' || r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// uncut removes truncation marks.
func uncut(text string) string {
	for {
		was := text
		for _, mark := range []string{"…", "...", "<cut>", "[truncated]", "(truncated)"} {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, mark), mark))
		}
		if text == was {
			return text
		}
	}
}
