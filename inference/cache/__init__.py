"""What of a prompt is already computed?"""
