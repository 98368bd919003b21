// Answers that routes of the kernel and of plugins share.
import { json } from "./httpMiddleware.ts"

const challenge = { "www-authenticate": "Bearer" }

/** 401 without a listed key. */
export const unauthorized = json({ error: "unauthorized" }, { status: 401, headers: challenge })

/** 401 on a route for operators. */
export const operatorRequired = json(
  { error: "unauthorized", message: "an operator's key is required" },
  { status: 401, headers: challenge }
)

/** 503 while the database does not answer. */
export const temporarilyUnavailable = json(
  { error: "temporarily_unavailable" },
  { status: 503, headers: { "retry-after": "1" } }
)
