// The lane of a database call. Payments (their requests, the follower, the channels) may use every connection; all
// others (catalog, search, analytics, tools) use at most half of them, so that they never delay a payment. Maintenance
// may take minutes: migrations and index builds.
import { Context } from "effect"

export type LaneName = "payments" | "background" | "maintenance"

/** Inherited by the fibers that a fiber starts. */
export const Lane = Context.Reference<LaneName>("tollkeeper/database/Lane", { defaultValue: () => "background" })
