package skel

import (
	"errors"
	"strconv"
	"strings"

	"cnictl/daemon/api/cause"
)

// versions are the supported versions of the CNI specification, oldest first.
var versions = [...]string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

const (
	// OldestVersion applies to configurations that name none.
	OldestVersion = "0.1.0"
	newestVersion = "1.1.0"
)

// versionJSON is the answer to VERSION.
const versionJSON = `{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}` + "\n"

func supported(version string) bool {
	for _, v := range versions {
		if v == version {
			return true
		}
	}
	return false
}

// checkVersion refuses unsupported configuration versions.
func checkVersion(version string) *Error {
	if supported(version) {
		return nil
	}
	return &Error{
		Code: CodeIncompatibleVersion, Msg: "incompatible CNI versions", Cause: cause.InvalidConfig,
		Details: "config is " + strconv.Quote(version) + ", plugin supports " + QuoteList(versions[:]),
	}
}

// checkVerbVersion is the check for verbs that later versions added. Logic and texts are
// the library's.
func checkVerbVersion(verb, version, since string) *Error {
	allowed, err := atLeast(version, since)
	if err != nil {
		return &Error{Code: CodeDecoding, Msg: err.Error(), Cause: cause.InvalidConfig}
	}
	if !allowed {
		return &Error{Code: CodeIncompatibleVersion, Msg: "config version does not allow " + verb, Cause: cause.InvalidConfig}
	}
	if ours, _ := atLeast(newestVersion, version); !ours {
		return &Error{Code: CodeIncompatibleVersion, Msg: "plugin version does not allow " + verb, Cause: cause.InvalidConfig}
	}
	return checkVersion(version)
}

func atLeast(version, other string) (bool, error) {
	a, err := parseVersion(version)
	if err != nil {
		return false, err
	}
	b, err := parseVersion(other)
	if err != nil {
		return false, err
	}
	for i := range a {
		if a[i] != b[i] {
			return a[i] > b[i], nil
		}
	}
	return true, nil
}

func parseVersion(version string) (out [3]int, _ error) {
	parts := strings.Split(version, ".")
	if len(parts) > len(out) {
		return out, errors.New("invalid version " + strconv.Quote(version) + ": too many parts")
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return out, errors.New("failed to convert " + [...]string{"major", "minor", "micro"}[i] + " version part " + strconv.Quote(part) + ": " + err.Error())
		}
		out[i] = n
	}
	return out, nil
}

// QuoteList prints a list as %q does.
func QuoteList(list []string) string {
	quoted := make([]string, 0, len(list))
	for _, s := range list {
		quoted = append(quoted, strconv.Quote(s))
	}
	return "[" + strings.Join(quoted, " ") + "]"
}
