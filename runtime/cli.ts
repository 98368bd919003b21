// The entry under the name that a person expects. `cli.mjs` is the same and smaller: see there why.
import "./cli.mjs"
