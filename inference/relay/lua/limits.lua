-- What keys, teams and models may use, and what they have: settled by the script that ends a job.

local function settle_limits(job, usage)
end

