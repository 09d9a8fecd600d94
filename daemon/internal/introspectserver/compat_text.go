package introspectserver

import "cnictl/daemon/api/logline"

// Texts of upstream that other tools match on.
const (
	// requestLogFormat: method, peer, URI.
	requestLogFormat = logline.TextAccess + "%s, from: %s, URI: %s"
	notFoundBody     = "Not Found"
	textPlain        = "text/plain; charset=utf-8"
)
