// What a plugin may know of the machine it stands on: its name and the folder that is the process's own to keep state
// in.
import { Context } from "effect"

export class Host extends Context.Service<
  Host,
  {
    /** The machine's name; the default of `server.instance`. */
    readonly name: string
    /**
     * Absolute path of the state folder (`--state`, default `.tollkeeper`). It exists and is writable by this user
     * alone.
     */
    readonly stateFolder: string
  }
>()("tollkeeper/platform/Host") {}
