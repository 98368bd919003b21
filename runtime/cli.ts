// The conventional entry name; `cli.mjs` is the same and smaller, see there.
import "./cli.mjs"
