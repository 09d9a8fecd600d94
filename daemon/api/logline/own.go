package logline

// TextAPISilent begins our line about an API server that has not answered yet. The doctor
// searches for it. It must not contain [TextAPIUnreachable] or [TextAPICheckFailed].
const TextAPISilent = "The API server does not answer yet"
