package introspectserver

// Texts of the original that other tools match on.
const (
	// requestLogFormat: method, peer, URI.
	requestLogFormat = "Handling http request: %s, from: %s, URI: %s"
	notFoundBody     = "Not Found"
	textPlain        = "text/plain; charset=utf-8"
)
