package introspectserver

import "cnictl/daemon/api/logline"

// Upstream's texts that other tools match on.
const (
	// requestLogFormat takes method, peer and URI.
	requestLogFormat = logline.TextAccess + "%s, from: %s, URI: %s"
	notFoundBody     = "Not Found"
	textPlain        = "text/plain; charset=utf-8"
)
