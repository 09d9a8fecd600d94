package scrub

import (
	"strings"

	"cnictl/daemon/lazy"
)

// Replacements for removed text.
const (
	hiddenID     = "<sandbox-id>"
	hiddenKey    = "<access-key>"
	hiddenSecret = "<secret>"
)

// Texts that must not leave the node. Values are matched as they appear in a JSON line, in
// a text quoted once more (\"), in a header, and in a URL's query.
var (
	// A CNI container id: 64 hexadecimal digits, with no further one on either side.
	sandboxID = lazy.Regexp(`(?i)(^|[^0-9a-f])[0-9a-f]{64}($|[^0-9a-f])`)
	// IAM access key ids, long-term (AKIA) and temporary (ASIA).
	accessKey = lazy.Regexp(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b`)
	// name: value, name=value or "name":"value" with a secret value. It must be on one
	// line, or the name on the next line would be taken for the value.
	namedSecret = lazy.Regexp(`(?i)(authorization|x-aws-ec2-metadata-token|x-amz-security-token|x-amz-signature|x-amz-credential|` +
		`aws[_-]?secret[_-]?access[_-]?key|secret[_-]?access[_-]?key|aws[_-]?session[_-]?token|session[_-]?token|security[_-]?token|` +
		`bearer[_-]?token|id[_-]?token|password|passwd|client[_-]?secret)` +
		`([\\"' ]*[:=][\\"' \[]*)((?:(?:bearer|basic|aws4-hmac-sha256)[ \t]+)?[^\s"'\\&,;}\]]+)`)
	// The rest of an AWS signature, and tokens without a name.
	scheme = lazy.Regexp(`(?i)\b(bearer|basic|aws4-hmac-sha256)[ \t]+(?:credential=)?[a-z0-9._~+/=-]{8,}`)
	signed = lazy.Regexp(`(?i)\b(signature=)[0-9a-f]{16,}`)
	webKey = lazy.Regexp(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	// scheme://user:password@host
	userinfo = lazy.Regexp(`(?i)\b([a-z][a-z0-9+.-]*:(?:\\?/){2})[^\s/"'\\@?#]+@`)
)

// Line removes sandbox ids and credentials from a line.
func Line(line string) string {
	if strings.Contains(line, "://") || strings.Contains(line, `:\/\/`) {
		line = userinfo().ReplaceAllString(line, "${1}"+hiddenSecret+"@")
	}
	line = namedSecret().ReplaceAllString(line, "${1}${2}"+hiddenSecret)
	line = scheme().ReplaceAllString(line, "${1} "+hiddenSecret)
	line = signed().ReplaceAllString(line, "${1}"+hiddenSecret)
	line = webKey().ReplaceAllString(line, hiddenSecret)
	line = accessKey().ReplaceAllString(line, hiddenKey)
	for sandboxID().MatchString(line) { // adjacent matches share the character between them
		line = sandboxID().ReplaceAllString(line, "${1}"+hiddenID+"${2}")
	}
	return line
}

// secretName matches names of settings whose value is secret. placeName matches names that
// only say where the secret is, or how it is used.
var (
	secretName = lazy.Regexp(`(?i)(^|_)(secret|password|passwd|pwd|passphrase|token|credentials?|authorization|(access|api|auth|private|ssh)_?key)(_|$)`)
	placeName  = lazy.Regexp(`(?i)_(file|path|dir|uri|url|mode|timeout|ttl)$`)
)

// Setting returns the value of a setting, such as an environment variable, or a replacement
// if its name says that it is secret.
func Setting(name, value string) string {
	if value != "" && secretName().MatchString(name) && !placeName().MatchString(name) {
		return hiddenSecret
	}
	return Line(value)
}
