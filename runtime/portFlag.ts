// A flag of commands that listen.
import { Flag } from "effect/cli"

/** A TCP port; 0 picks a free one. */
export const portFlag = (name: string): Flag.Flag<number> =>
  Flag.Int(name).pipe(
    Flag.filter(
      (port) => port >= 0 && port <= 65_535,
      () => "a port from 1 to 65535, or 0 for a free one"
    )
  )
