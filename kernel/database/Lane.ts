// What a database use is for. Payments (their requests, the follower, the channels) may use every connection; all else
// (catalog, search, analytics, tools) half of them at most, so that it can never keep a payment waiting. Maintenance is
// what may take minutes: migrations and the building of an index.
import { Context } from "effect"

export type LaneName = "payments" | "background" | "maintenance"

/** Inherited by the fibers that a fiber starts. */
export const Lane = Context.Reference<LaneName>("tollkeeper/database/Lane", { defaultValue: () => "background" })
